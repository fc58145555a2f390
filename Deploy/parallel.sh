#!/usr/bin/env bash
# A list of sources with GNU parallel: each job does one shard.
#
#   Deploy/parallel.sh 8 LIST FOLDER [options of reel poster]
#
# PARALLEL has options of GNU parallel: PARALLEL="-j 4", or for other machines PARALLEL="--sshloginfile nodes" if LIST,
# FOLDER and reel are there under the same paths. REEL names another reel, REEL_COMMAND another command (frames).
set -eu

if [ $# -lt 3 ]; then
  echo "usage: Deploy/parallel.sh SHARDS LIST FOLDER [OPTIONS]" >&2
  exit 64
fi
count=$1 list=$2 folder=$3
shift 3

# parallel retries whatever fails. Exit code 1, some sources failed permanently, is not to be retried.
seq 0 $((count - 1)) | parallel --will-cite --quote --retries 5 bash -c '"$@" || [ $? -eq 1 ]' - \
  "${REEL:-reel}" "${REEL_COMMAND:-poster}" --input "$list" -o "$folder" --shard "{}/$count" --resume --quiet "$@"
