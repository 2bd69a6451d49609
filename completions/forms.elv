# Completion of forms for elvish: put this line into rc.elv.
# It asks the program itself, so that it always fits the installed version.
eval (forms completions elvish | slurp)
