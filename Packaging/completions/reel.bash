#!/bin/bash

__reel_cursor_index_in_current_word() {
    local remaining="${COMP_LINE}"

    local word
    for word in "${COMP_WORDS[@]::COMP_CWORD}"; do
        remaining="${remaining##*([[:space:]])"${word}"*([[:space:]])}"
    done

    local -ir index="$((COMP_POINT - ${#COMP_LINE} + ${#remaining}))"
    if [[ "${index}" -le 0 ]]; then
        printf 0
    else
        printf %s "${index}"
    fi
}

# positional arguments:
#
# - 1: the current (sub)command's count of positional arguments
#
# required variables:
#
# - repeating_flags: the repeating flags that the current (sub)command can accept
# - non_repeating_flags: the non-repeating flags that the current (sub)command can accept
# - repeating_options: the repeating options that the current (sub)command can accept
# - non_repeating_options: the non-repeating options that the current (sub)command can accept
# - positional_number: value ignored
# - unparsed_words: unparsed words from the current command line
#
# modified variables:
#
# - non_repeating_flags: remove flags for this (sub)command that are already on the command line
# - non_repeating_options: remove options for this (sub)command that are already on the command line
# - positional_number: set to the current positional number
# - unparsed_words: remove all flags, options, and option values for this (sub)command
__reel_offer_flags_options() {
    local -ir positional_count="${1}"
    positional_number=0

    local was_flag_option_terminator_seen=false
    local is_parsing_option_value=false

    local -ar unparsed_word_indices=("${!unparsed_words[@]}")
    local -i word_index
    for word_index in "${unparsed_word_indices[@]}"; do
        if "${is_parsing_option_value}"; then
            # This word is an option value:
            # Reset marker for next word iff not currently the last word
            [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]] && is_parsing_option_value=false
            unset "unparsed_words[${word_index}]"
            # Do not process this word as a flag or an option
            continue
        fi

        local word="${unparsed_words["${word_index}"]}"
        if ! "${was_flag_option_terminator_seen}"; then
            case "${word}" in
            --)
                unset "unparsed_words[${word_index}]"
                # by itself -- is a flag/option terminator, but if it is the last word, it is the start of a completion
                if [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]]; then
                    was_flag_option_terminator_seen=true
                fi
                continue
                ;;
            -*)
                # ${word} is a flag or an option
                # If ${word} is an option, mark that the next word to be parsed is an option value
                local option
                for option in "${repeating_options[@]}" "${non_repeating_options[@]}"; do
                    [[ "${word}" = "${option}" ]] && is_parsing_option_value=true && break
                done

                # Remove ${word} from ${non_repeating_flags} or ${non_repeating_options} so it isn't offered again
                local not_found=true
                local -i index
                for index in "${!non_repeating_flags[@]}"; do
                    if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                        unset "non_repeating_flags[${index}]"
                        non_repeating_flags=("${non_repeating_flags[@]}")
                        not_found=false
                        break
                    fi
                done
                if "${not_found}"; then
                    for index in "${!non_repeating_flags[@]}"; do
                        if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                            unset "non_repeating_flags[${index}]"
                            non_repeating_flags=("${non_repeating_flags[@]}")
                            break
                        fi
                    done
                fi
                unset "unparsed_words[${word_index}]"
                continue
                ;;
            esac
        fi

        # ${word} is neither a flag, nor an option, nor an option value
        if [[ "${positional_number}" -lt "${positional_count}" || "${positional_count}" -lt 0 ]]; then
            # ${word} is a positional
            ((positional_number++))
            unset "unparsed_words[${word_index}]"
        else
            if [[ -z "${word}" ]]; then
                # Could be completing a flag, option, or subcommand
                positional_number=-1
            else
                # ${word} is a subcommand or invalid, so stop processing this (sub)command
                positional_number=-2
            fi
            break
        fi
    done

    unparsed_words=("${unparsed_words[@]}")

    if\
        ! "${was_flag_option_terminator_seen}"\
        && ! "${is_parsing_option_value}"\
        && [[ ("${cur}" = -* && "${positional_number}" -ge 0) || "${positional_number}" -eq -1 ]]
    then
        COMPREPLY+=($(compgen -W "${repeating_flags[*]} ${non_repeating_flags[*]} ${repeating_options[*]} ${non_repeating_options[*]}" -- "${cur}"))
    fi
}

__reel_add_completions() {
    local completion
    while IFS='' read -r completion; do
        COMPREPLY+=("${completion}")
    done < <(IFS=$'\n' compgen "${@}" -- "${cur}")
}

__reel_custom_complete() {
    if [[ -n "${cur}" || -z ${COMP_WORDS[${COMP_CWORD}]} || "${COMP_LINE:${COMP_POINT}:1}" != ' ' ]]; then
        local -ar words=("${COMP_WORDS[@]}")
    else
        local -ar words=("${COMP_WORDS[@]::${COMP_CWORD}}" '' "${COMP_WORDS[@]:${COMP_CWORD}}")
    fi

    "${COMP_WORDS[0]}" "${@}" "${words[@]}"
}

_reel() {
    local state
    state="$(shopt -p;shopt -po)"
    trap "${state//$'\n'/;}" RETURN
    shopt -s extglob
    set +o history +o posix

    local -xr SAP_SHELL=bash
    local -x SAP_SHELL_VERSION
    SAP_SHELL_VERSION="$(IFS='.';printf %s "${BASH_VERSINFO[*]}")"
    local -r SAP_SHELL_VERSION

    local -r cur="${2}"
    local -r prev="${3}"

    local -i positional_number
    local -a unparsed_words=("${COMP_WORDS[@]:1:${COMP_CWORD}}")

    local -a repeating_flags=()
    local -a non_repeating_flags=(--version -h --help)
    local -a repeating_options=()
    local -a non_repeating_options=()
    __reel_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    frames|poster|storyboard|play|memory|feed|lab|calibrate|probe|manifest|serve|report|help)
        # Offer subcommand argument completions
        "_reel_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'frames poster storyboard play memory feed lab calibrate probe manifest serve report help' -- "${cur}"))
        ;;
    esac
}

_reel_frames() {
    repeating_flags=()
    non_repeating_flags=(--overwrite --md5 --fan-out --no-fan-out --resume --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--at --header --key --key-file)
    non_repeating_options=(-o --output --format --count --every --size --gravity --jobs --input --name --results --per-host --rate-limit --shard --shard-by --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '-o'|'--output')
        return
        ;;
    '--format')
        __reel_add_completions -W 'jpeg'$'\n''png'$'\n''webp'$'\n''avif'$'\n''ppm'$'\n''y4m'
        return
        ;;
    '--count')
        return
        ;;
    '--at')
        return
        ;;
    '--every')
        return
        ;;
    '--size')
        return
        ;;
    '--gravity')
        return
        ;;
    '--jobs')
        return
        ;;
    '--input')
        return
        ;;
    '--name')
        return
        ;;
    '--results')
        return
        ;;
    '--per-host')
        return
        ;;
    '--rate-limit')
        return
        ;;
    '--shard')
        return
        ;;
    '--shard-by')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_poster() {
    repeating_flags=()
    non_repeating_flags=(--overwrite --first --fan-out --no-fan-out --resume --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--header --key --key-file)
    non_repeating_options=(-o --output --format --quality --size --max-bytes --candidates --at --hdr --jobs --input --name --results --per-host --rate-limit --shard --shard-by --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '-o'|'--output')
        return
        ;;
    '--format')
        __reel_add_completions -W 'jpeg'$'\n''png'$'\n''webp'$'\n''avif'$'\n''ppm'$'\n''y4m'
        return
        ;;
    '--quality')
        return
        ;;
    '--size')
        return
        ;;
    '--max-bytes')
        return
        ;;
    '--candidates')
        return
        ;;
    '--at')
        return
        ;;
    '--hdr')
        __reel_add_completions -W 'sdr'$'\n''keep'
        return
        ;;
    '--jobs')
        return
        ;;
    '--input')
        return
        ;;
    '--name')
        return
        ;;
    '--results')
        return
        ;;
    '--per-host')
        return
        ;;
    '--rate-limit')
        return
        ;;
    '--shard')
        return
        ;;
    '--shard-by')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_storyboard() {
    repeating_flags=()
    non_repeating_flags=(--overwrite --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--header --key --key-file)
    non_repeating_options=(-o --output --every --count --grid --size --write --format --quality --jobs --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '-o'|'--output')
        return
        ;;
    '--every')
        return
        ;;
    '--count')
        return
        ;;
    '--grid')
        return
        ;;
    '--size')
        return
        ;;
    '--write')
        return
        ;;
    '--format')
        __reel_add_completions -W 'jpeg'$'\n''png'$'\n''webp'$'\n''avif'$'\n''ppm'$'\n''y4m'
        return
        ;;
    '--quality')
        return
        ;;
    '--jobs')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_play() {
    repeating_flags=()
    non_repeating_flags=(--loop --mute --linear --overwrite --strict --md5 --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--assert --audio-language --header --key --key-file)
    non_repeating_options=(--rate --duration --start --volume --y4m --wav -o --output --format --size --gravity --report --junit --buffer --threads --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--rate')
        return
        ;;
    '--duration')
        return
        ;;
    '--start')
        return
        ;;
    '--volume')
        return
        ;;
    '--y4m')
        return
        ;;
    '--wav')
        return
        ;;
    '-o'|'--output')
        return
        ;;
    '--format')
        return
        ;;
    '--size')
        return
        ;;
    '--gravity')
        return
        ;;
    '--report')
        return
        ;;
    '--assert')
        return
        ;;
    '--junit')
        return
        ;;
    '--audio-language')
        return
        ;;
    '--buffer')
        return
        ;;
    '--threads')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_memory() {
    repeating_flags=()
    non_repeating_flags=(--warm --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--header --key --key-file)
    non_repeating_options=(--players --stage --play --buffer --budget --curve --hold --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--players')
        return
        ;;
    '--stage')
        return
        ;;
    '--play')
        return
        ;;
    '--buffer')
        return
        ;;
    '--budget')
        return
        ;;
    '--curve')
        return
        ;;
    '--hold')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_feed() {
    repeating_flags=()
    non_repeating_flags=(--virtual --calibrate --details --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--assert --header --key --key-file)
    non_repeating_options=(--feed --pool --swipes --dwell --flicks --back --bursts --seed --link --preload --first-rung --decode-cost --device --cores --decode --compare --report --csv --trace --junit --contact-sheet --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--feed')
        return
        ;;
    '--pool')
        return
        ;;
    '--swipes')
        return
        ;;
    '--dwell')
        return
        ;;
    '--flicks')
        return
        ;;
    '--back')
        return
        ;;
    '--bursts')
        return
        ;;
    '--seed')
        return
        ;;
    '--link')
        return
        ;;
    '--preload')
        return
        ;;
    '--first-rung')
        __reel_add_completions -W 'low'$'\n''auto'
        return
        ;;
    '--decode-cost')
        return
        ;;
    '--device')
        return
        ;;
    '--cores')
        return
        ;;
    '--decode')
        return
        ;;
    '--compare')
        return
        ;;
    '--assert')
        return
        ;;
    '--report')
        return
        ;;
    '--csv')
        return
        ;;
    '--trace')
        return
        ;;
    '--junit')
        return
        ;;
    '--contact-sheet')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_lab() {
    repeating_flags=()
    non_repeating_flags=(--plain-links --restart --dry-run --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--feed --link --viewer --device --header --key --key-file)
    non_repeating_options=(--pools --policies --seeds --swipes --first-rung --baseline --results --jobs --report --csv --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--feed')
        return
        ;;
    '--link')
        return
        ;;
    '--viewer')
        return
        ;;
    '--device')
        return
        ;;
    '--pools')
        return
        ;;
    '--policies')
        return
        ;;
    '--seeds')
        return
        ;;
    '--swipes')
        return
        ;;
    '--first-rung')
        return
        ;;
    '--baseline')
        return
        ;;
    '--results')
        return
        ;;
    '--jobs')
        return
        ;;
    '--report')
        return
        ;;
    '--csv')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_calibrate() {
    repeating_flags=()
    non_repeating_flags=(--insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--header --key --key-file)
    non_repeating_options=(--output -o --name --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--output'|'-o')
        return
        ;;
    '--name')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_probe() {
    repeating_flags=()
    non_repeating_flags=(--insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--header --key --key-file)
    non_repeating_options=(--bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_manifest() {
    repeating_flags=()
    non_repeating_flags=(--shallow --strict --follow --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--header --key --key-file)
    non_repeating_options=(--output -o --duration --now --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--output')
        __reel_add_completions -W 'json'$'\n''hls'
        return
        ;;
    '-o')
        return
        ;;
    '--duration')
        return
        ;;
    '--now')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_serve() {
    repeating_flags=()
    non_repeating_flags=(--proxy --insecure --json --quiet --verbose --version -h --help)
    repeating_options=(--fault --header --key --key-file)
    non_repeating_options=(--host --port --link --bandwidth --max-height --timeout --retries --user-agent --cacert --cookie-file --color)
    __reel_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--host')
        return
        ;;
    '--port')
        return
        ;;
    '--link')
        return
        ;;
    '--fault')
        return
        ;;
    '--bandwidth')
        return
        ;;
    '--max-height')
        return
        ;;
    '--header')
        return
        ;;
    '--key')
        return
        ;;
    '--key-file')
        return
        ;;
    '--timeout')
        return
        ;;
    '--retries')
        return
        ;;
    '--user-agent')
        return
        ;;
    '--cacert')
        return
        ;;
    '--cookie-file')
        return
        ;;
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_reel_report() {
    repeating_flags=()
    non_repeating_flags=(--json --quiet --version -h --help)
    repeating_options=()
    non_repeating_options=(--color --html)
    __reel_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--color')
        __reel_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--html')
        return
        ;;
    esac
}

_reel_help() {
    repeating_flags=()
    non_repeating_flags=(--version)
    repeating_options=()
    non_repeating_options=()
    __reel_offer_flags_options -1
}

complete -o filenames -F _reel reel
