package state

// What most functions take besides their own arguments.
const common = `
test
    only tell what would be changed
pillar
    pillar values for this run, over those of the master
saltenv, pillarenv
    the environments of states and pillar
queue
    wait for another state run to end instead of failing; a number lets that many wait
concurrent
    run beside other state runs; states that touch the same things get in each other's way
`

const (
	applyDoc = `Apply the states of the top file, or those of the given SLS files: highstate or sls.

mods
    SLS files, a list or separated by commas; none is the top file
` + common + `
CLI Example:

    salt '*' state.apply
    salt '*' state.apply web,db test=True
`
	testDoc = `Tell what state.apply would change.

The arguments are those of state.apply.

CLI Example:

    salt '*' state.test web
`
	highstateDoc = `Apply the states that the top file assigns to this minion.

exclude
    SLS files, or dicts with sls or id, to leave out
whitelist
    SLS files to apply and no others
cache
    apply the high data of the last run instead of new files
terse
    return only what failed or changed
mock
    run everything but the states themselves
state_events
    send an event for each state
` + common + `
CLI Example:

    salt '*' state.highstate
    salt '*' state.highstate exclude=web pillar='{"port": 80}'
`
	slsDoc = `Apply SLS files.

mods
    SLS files, a list or separated by commas
exclude
    SLS files, or dicts with sls or id, to leave out
sync_mods
    kinds of custom modules for which saltutil.sync_… is called first, a list or separated by commas, or all
state_events
    send an event for each state
mock
    run everything but the states themselves
` + common + `
CLI Example:

    salt '*' state.sls web,db
`
	slsIDDoc = `Apply one state of SLS files, with what it requires.

id_
    the id of the state
mods
    SLS files in which it and its requisites are
state_events
    send an event for each state
` + common + `
CLI Example:

    salt '*' state.sls_id nginx web
`
	singleDoc = `Apply one state that is given here.

fun
    the state function
name
    its name argument
` + common + `
Further arguments are those of the state.

CLI Example:

    salt '*' state.single pkg.installed vim
`
	lowDoc = `Apply one chunk of low data.

data
    the chunk: state, fun, name and arguments

CLI Example:

    salt '*' state.low '{"state": "pkg", "fun": "installed", "name": "vim", "__id__": "vim"}'
`
	highDoc = `Apply high data.

data
    what an SLS file renders to
` + common + `
CLI Example:

    salt '*' state.high '{"vim": {"pkg": ["installed"]}}'
`
	templateDoc = `Apply an SLS file of this host.

tem
    path of the file; .sls is added if it is missing

CLI Example:

    salt '*' state.template /srv/local/web.sls
`
	templateStrDoc = `Apply the text of an SLS file.

tem
    the text

Other keyword arguments, pillar among them, are accepted and have no effect, as in stock.

CLI Example:

    salt '*' state.template_str '{"vim": {"pkg": ["installed"]}}'
`
	topDoc = `Apply another top file.

topfn
    the top file on the file server
` + common + `
CLI Example:

    salt '*' state.top staging_top.sls
`
	showHighstateDoc = `Show the high data that the top file gives this minion.

pillar
    pillar values to compile with

CLI Example:

    salt '*' state.show_highstate
`
	showLowstateDoc = `Show the low data that the top file gives this minion, in the order in which it would run.

CLI Example:

    salt '*' state.show_lowstate
`
	showSLSDoc = `Show the high data of SLS files.

mods
    SLS files, a list or separated by commas
pillar, saltenv, pillarenv
    what to compile with

CLI Example:

    salt '*' state.show_sls web,db
`
	showLowSLSDoc = `Show the low data of SLS files.

mods
    SLS files, a list or separated by commas
pillar, saltenv, pillarenv
    what to compile with

CLI Example:

    salt '*' state.show_low_sls web
`
	showTopDoc = `Show which SLS files of which environment the top file gives this minion.

CLI Example:

    salt '*' state.show_top
`
	showStatesDoc = `List the SLS files that a highstate would apply.

CLI Example:

    salt '*' state.show_states
`
	showUsageDoc = `Count which SLS files the top file gives this minion, and which not.

CLI Example:

    salt '*' state.show_state_usage
`
	slsExistsDoc = `Tell whether SLS files are there and can be rendered.

mods
    SLS files, a list or separated by commas

CLI Example:

    salt '*' state.sls_exists web,db
`
	idExistsDoc = `Tell whether SLS files have all of the given ids.

ids
    ids, a list or separated by commas
mods
    SLS files, a list or separated by commas

CLI Example:

    salt '*' state.id_exists nginx,site web
`
	clearCacheDoc = `Forget the high data of earlier runs.

CLI Example:

    salt '*' state.clear_cache
`
	runningDoc = `Tell which state runs are in progress.

concurrent
    answer as if there were none

CLI Example:

    salt '*' state.running
`
	disableDoc = `Keep states from being applied until they are enabled again.

states
    SLS files or state functions, a list or separated by commas; highstate is the top file

CLI Example:

    salt '*' state.disable highstate,web
`
	enableDoc = `Allow states again that were disabled.

states
    SLS files or state functions, a list or separated by commas

CLI Example:

    salt '*' state.enable web
`
	listDisabledDoc = `List what state.disable has disabled.

CLI Example:

    salt '*' state.list_disabled
`
	pkgDoc = `Run the states of a packed run, as salt-ssh makes them: an archive (tar, gzip) with lowstate.json, and with pillar.json,
roster_grains.json and a directory of files for each environment as needed. The answer is an empty map if there is no such
archive, it has another hash, or it has names that lead out of it. The files of the archive are used where file_client is local.

pkg_path
    the archive, on this host
pkg_sum, hash_type
    its hash, and of which kind that is
test
    change nothing, only tell what would be done

CLI Example:

    salt '*' state.pkg /tmp/salt_state.tgz 760a9353810e36f6d81416366fc426dc md5
`
	requestDoc = `Ask the administrator of this host to apply states: they run in test mode, and state.run_request applies them.

mods
    SLS files, a list or separated by commas; none is the top file
name
    name of the request

CLI Example:

    salt '*' state.request web
`
	checkRequestDoc = `Show what was requested.

name
    one request only

CLI Example:

    salt '*' state.check_request
`
	clearRequestDoc = `Forget what was requested.

name
    one request only

CLI Example:

    salt '*' state.clear_request
`
	runRequestDoc = `Apply what was requested.

name
    the request

CLI Example:

    salt-call state.run_request
`
	pauseDoc = `Make a state run wait before a state.

jid
    the job that runs the states
state_id
    the id of the state, or none for the next one
duration
    seconds after which it goes on by itself

CLI Example:

    salt '*' state.pause 20171130110407769519 nginx 60
`
	resumeDoc = `Let a paused state run go on.

jid
    the job that runs the states
state_id
    the id of the paused state, or none for all

CLI Example:

    salt '*' state.resume 20171130110407769519
`
	softKillDoc = `End a state run before a state.

jid
    the job that runs the states
state_id
    the id of the state, or none for the next one

CLI Example:

    salt '*' state.soft_kill 20171130110407769519 nginx
`
	getPausesDoc = `Show which state runs are paused.

jid
    one job, or a list of them

CLI Example:

    salt '*' state.get_pauses
`
)
