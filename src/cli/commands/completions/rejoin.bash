# Bash splits words at the characters of COMP_WORDBREAKS, such as `=`: joins what no blank separates.
_forms() {
    local line=$COMP_LINE words=() word start= i at=0
    for i in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[i]}
        if [[ $i == 0 || $line == [[:blank:]]* ]]; then
            words+=("")
            line=${line#"${line%%[![:blank:]]*}"}
        fi
        if ((i == COMP_CWORD)); then
            start=${words[${#words[@]} - 1]}
            [[ $word == [=:]* ]] && start+=$word
            at=$((${#words[@]} - 1))
        fi
        words[${#words[@]} - 1]+=$word
        line=${line#"$word"}
    done
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$at
    _clap_complete_forms "$1" "$start$2" "$3"
    COMPREPLY=("${COMPREPLY[@]#"$start"}")
    # The `=` behind the id of a question is not quoted.
    [[ ${COMPREPLY[0]} =~ ^[a-z0-9_]+=$ ]] && compopt +o filenames
}
