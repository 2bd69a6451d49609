# Completion of forms for fish: put this file into ~/.config/fish/completions.
# It asks the program itself, so that it always fits the installed version.
forms completions fish | source
