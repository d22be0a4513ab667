#!/bin/sh
# A whole study in another language: shell, with curl and jq. Each instrument is a program that
# takes the jobs of one resource.
#
#     calamint serve --storage sqlite:///study.db
#     sh examples/with_curl.sh http://127.0.0.1:8000 office 20 &
#     sh examples/with_curl.sh http://127.0.0.1:8000 hall 20
#
# It ends when the study has 20 evaluations, and prints what is recommended. Each request that
# changes something has a key of its own: curl makes a request again that had no answer, with the
# same key, so that it has its effect once. Set CALAMINT_TOKEN if the server asks for a token.
set -eu
study=$1/api/studies/1
resource=$2
evaluations=$3

# request PATH [JSON]: what the server answers
request() {
    path=$1 body=${2-}
    set -- --silent --show-error --fail-with-body --retry 30 --retry-connrefused
    if [ -n "${CALAMINT_TOKEN-}" ]; then
        set -- "$@" --header "Authorization: Bearer $CALAMINT_TOKEN"
    fi
    if [ -n "$body" ]; then
        key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
        set -- "$@" --header "Content-Type: application/json" \
            --header "Idempotency-Key: $key" --data "$body"
    fi
    curl "$@" "$study/$path"
}

# measure JOB: what the instrument finds at the parameters of a job
measure() {
    printf '%s' "$1" | jq '.params as {$x, $y} | if .task == "estimate"
        then {loss: (($x - 0.3) * ($x - 0.3) + ($y - 0.9) * ($y - 0.9))}
        else {load: ($x + $y)} end'
}

while [ "$(request summary | jq '.evaluations | add')" -lt "$evaluations" ]; do
    # Wait up to ten seconds until something can start. A job that is not told is tried again
    # after an hour.
    job=$(request ask '{"resource": "'"$resource"'", "wait": 10, "lease": 3600}' | jq '.job')
    [ "$job" != null ] || continue
    number=$(printf '%s' "$job" | jq '.number')
    attempt=$(printf '%s' "$job" | jq '.attempt')
    if values=$(measure "$job"); then
        request "jobs/$number/tell" "{\"attempt\": $attempt, \"values\": $values}" >/dev/null
        printf '%s: job %s, %s\n' "$resource" "$number" "$(printf '%s' "$values" | jq -c .)"
    else
        request "jobs/$number/fail" "{\"attempt\": $attempt, \"reason\": \"no reading\"}" >/dev/null
    fi
done
request recommendation | jq '{params, probability}'
