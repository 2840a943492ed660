package states

// Keywords of a state that are the state system's own and never reach the function, unless it declares them (salt/state.py:
// STATE_REQUISITE_KEYWORDS, STATE_REQUISITE_IN_KEYWORDS, STATE_RUNTIME_KEYWORDS).

// isRequisite tells whether a keyword is a requisite.
func isRequisite(key string) bool {
	switch key {
	case "onchanges", "onchanges_any", "onfail", "onfail_any", "onfail_all", "onfail_stop", "prereq", "prerequired", "watch",
		"watch_any", "require", "require_any", "listen":
		return true
	}
	return false
}

// isRequisiteIn tells whether a keyword is a requisite of the other side.
func isRequisiteIn(key string) bool {
	switch key {
	case "onchanges_in", "onfail_in", "prereq_in", "watch_in", "require_in", "listen_in":
		return true
	}
	return false
}

// isInternal tells whether a keyword is the state system's own.
func isInternal(key string) bool {
	if isRequisite(key) || isRequisiteIn(key) {
		return true
	}
	switch key {
	case "fun", "state", "check_cmd", "cmd_opts_exclude", "failhard", "onlyif", "unless", "creates", "retry", "order", "parallel",
		"reload_modules", "reload_grains", "reload_pillar", "runas", "runas_password", "fire_event", "saltenv", "umask", "use", "use_in",
		"__env__", "__sls__", "__id__", "__sls_included_from__", "__orchestration_jid__", "__pub_user", "__pub_arg", "__pub_jid",
		"__pub_fun", "__pub_tgt", "__pub_ret", "__pub_pid", "__pub_tgt_type", "__prereq__", "__prerequired__", "__umask__":
		return true
	}
	return false
}

// requisiteKeywords are those whose targets mod_aggregate collects.
var requisiteKeywords = [...]string{"onchanges", "onchanges_any", "onfail", "onfail_any", "onfail_all", "onfail_stop", "prereq",
	"prerequired", "watch", "watch_any", "require", "require_any", "listen",
	"onchanges_in", "onfail_in", "prereq_in", "watch_in", "require_in", "listen_in"}
