#!/bin/sh
# The stories of queues, told in a terminal. Runs against an installation of its own: vcctl must be on the PATH and signed in.
#
# Each step is a command as one would type it; `refused CODE` in front of one says that it is refused, and with which exit code.
set -eu

say() { printf '\n# %s\n' "$*"; }

run() {
    printf '$ %s\n' "$*"
    "$@"
}

refused() {
    code=$1
    shift
    printf '$ %s\n' "$*"
    if "$@"; then
        echo "this should have been refused: $*" >&2
        exit 1
    else
        [ $? -eq "$code" ]
    fi
}

say "A cluster of two nodes, from a manifest on standard input"
vcctl apply -f - <<'NODES'
apiVersion: v1
kind: Node
metadata: {name: story-1}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: story-2}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
NODES

say "An operator makes a queue with a weight, looks at it, and finds it in the list"
run vcctl queue create --name myqueue --weight 10
run vcctl queue view myqueue
run vcctl queue list

say "A hierarchy: what the children deserve must fit into what the parent deserves, and only leaves take jobs"
run vcctl queue create research --deserved cpu=8 --guarantee cpu=2
run vcctl queue create vision --parent research --deserved cpu=4
refused 1 vcctl queue create speech --parent research --deserved cpu=6
run vcctl queue create speech --parent research --deserved cpu=4
refused 1 vcctl job run --name lost --queue research
run vcctl queue children research
run vcctl queue tree

say "A safe window for changes: a suspended queue takes jobs, and starts none"
run vcctl queue suspend research --reason "new quotas"
run vcctl job run --name train --queue vision --requests cpu=2 --limits cpu=2
run vcctl queue update vision --deserved cpu=2
run vcctl queue explain research
refused 1 vcctl queue resume vision
run vcctl queue resume research
run vcctl job watch train --until Running --interval 0.5

say "The end of a queue: it takes nothing new, drains, is Closed when its last job has ended, and only then can be deleted"
run vcctl queue close research --reason "the project is over"
refused 1 vcctl job run --name late --queue vision
refused 1 vcctl queue delete research --cascade --yes
run vcctl job delete train --yes
run vcctl queue delete research --cascade --yes
refused 3 vcctl queue get research

say "The same by Volcano's form, and what a quantity is not"
run vcctl queue operate --name myqueue --action close
run vcctl queue operate --name myqueue --action open
refused 1 vcctl queue update myqueue --guarantee cpu=2c
run vcctl queue history myqueue --commands

say "The tree as a file: taken out, changed, compared, applied"
run vcctl export myqueue
vcctl export myqueue | sed 's/weight: 10/weight: 20/' | vcctl diff -f -
vcctl export myqueue | sed 's/weight: 10/weight: 20/' | vcctl apply -f -
run vcctl queue get myqueue

say "That was all"
