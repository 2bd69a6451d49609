# Bash splits words at the characters of COMP_WORDBREAKS, such as `=`: joins what no blank separates.
_forms() {
    local line=$COMP_LINE words=() word start= i last at=0
    for i in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[i]}
        if [[ $i == 0 || $line == [[:blank:]]* ]]; then
            words+=("")
            line=${line#"${line%%[![:blank:]]*}"}
        fi
        last=$((${#words[@]} - 1))
        if ((i == COMP_CWORD)); then
            at=$last start=${words[last]}
            [[ $word == [=:]* ]] && start+=$word
        fi
        words[last]+=$word
        line=${line#"$word"}
    done
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$at
    _clap_complete_forms "$1" "$start${2//\\/}" "$3"
    # Answers are not names of files: readline does not quote all of their characters.
    local is_answer=${COMPREPLY[0]}
    COMPREPLY=("${COMPREPLY[@]#"$start"}")
    [[ $is_answer == *=* ]] && compopt +o filenames && for i in "${!COMPREPLY[@]}"; do
        printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"
    done
}
