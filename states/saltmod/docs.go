package saltmod

const stateDoc = `Run states on minions and wait for them.

name
    any name for this step
tgt, tgt_type
    the minions
sls
    state files, a text or a list
highstate
    True runs what the top file assigns
top
    another top file
saltenv, pillarenv, pillar, exclude, test, concurrent, queue
    arguments for the minions' function
expect_minions
    whether minions that do not answer have failed
fail_minions
    minions that may fail
allow_fail
    how many minions may fail
batch, subset
    so many at a time, or only so many of them
timeout
    seconds to wait for silent minions
ret, ret_config, ret_kwargs
    returners of the minions
failhard
    end the step with the first failure`

const functionDoc = `Run an execution function on minions and wait for it.

name
    the function
tgt, tgt_type
    the minions
arg, kwarg
    its arguments
expect_minions
    whether minions that do not answer have failed
fail_minions
    minions that may fail
fail_function
    an execution function that says whether a return is good
batch, subset, timeout, ret, ret_config, ret_kwargs, failhard
    as in salt.state`

const waitDoc = `Wait until an event was seen from each of many.

name
    the tag of the event, with wildcards
id_list
    whom to wait for, usually ids of minions
event_id
    the key of the event under which their name is
timeout
    seconds to wait
node
    whose bus: master or minion`

const runnerDoc = `Run a runner function on the master. Further arguments are those of the function.

name
    the function`

const parallelDoc = `Run several runner functions on the master at once.

name
    any name for this step
runners
    for each a name and a list with the function ("name") and its arguments ("kwarg")`

const wheelDoc = `Run a wheel function on the master. Further arguments are those of the function.

name
    the function`
