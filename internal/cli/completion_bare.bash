# Completion of parley needs two functions of the package bash-completion. Where it is not installed, these stand in for them.

# _get_comp_words_by_ref -n CHARACTERS cur prev words cword: sets the four variables of the caller. Bash cuts words at the characters
# of COMP_WORDBREAKS; those that are given here do not cut: a word that consists of them is joined to its neighbours.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
_get_comp_words_by_ref()
{
    local keep=$2 i last=-1 joined="" line=$COMP_LINE blank
    words=()
    cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        blank=""
        if [[ $line == [[:blank:]]* ]]; then
            blank=yes
            line="${line#"${line%%[![:blank:]]*}"}"
        fi
        line="${line#"${COMP_WORDS[i]}"}"
        if ((i > 0)) && [[ -z $blank && ( $joined == yes || ( -n ${COMP_WORDS[i]} && ${COMP_WORDS[i]} != *[!"$keep"]* ) ) ]]; then
            words[last]+=${COMP_WORDS[i]}
        else
            last=$((last + 1))
            words[last]=${COMP_WORDS[i]}
        fi
        joined=""
        [[ -n ${COMP_WORDS[i]} && ${COMP_WORDS[i]} != *[!"$keep"]* ]] && joined=yes
        ((i == COMP_CWORD)) && cword=$last
    done
    cur=${words[cword]}
    prev=""
    ((cword > 0)) && prev=${words[cword - 1]}
    return 0
}
fi

# __ltrim_colon_completions WORD: bash replaces only what stands behind the last colon, so what is in front of it is cut off.
if ! declare -F __ltrim_colon_completions >/dev/null; then
__ltrim_colon_completions()
{
    local i prefix
    [[ $1 == *:* && $COMP_WORDBREAKS == *:* ]] || return 0
    prefix=${1%"${1##*:}"}
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$prefix"}
    done
}
fi

