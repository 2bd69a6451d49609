# Completion of forms for zsh: source this file in ~/.zshrc, after compinit.
# It asks the program itself, so that it always fits the installed version.
source <(forms completions zsh)
