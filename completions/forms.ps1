# Completion of forms for PowerShell: dot-source this file in your profile.
# It asks the program itself, so that it always fits the installed version.
forms completions powershell | Out-String | Invoke-Expression
