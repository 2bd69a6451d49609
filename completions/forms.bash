# Completion of forms for bash: source this file, or put it into the completions folder.
# It asks the program itself, so that it always fits the installed version.
source <(forms completions bash)
