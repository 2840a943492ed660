package states

// The keywords that belong to the state system never reach a state function unless it declares them (salt/state.py:
// STATE_REQUISITE_KEYWORDS, STATE_REQUISITE_IN_KEYWORDS, STATE_RUNTIME_KEYWORDS).

// isRequisite reports whether a keyword is a requisite.
func isRequisite(key string) bool {
	switch key {
	case "onchanges", "onchanges_any", "onfail", "onfail_any", "onfail_all", "onfail_stop", "prereq", "prerequired", "watch",
		"watch_any", "require", "require_any", "listen":
		return true
	}
	return false
}

// isRequisiteIn reports whether a keyword is a requisite that is declared at the other end.
func isRequisiteIn(key string) bool {
	switch key {
	case "onchanges_in", "onfail_in", "prereq_in", "watch_in", "require_in", "listen_in":
		return true
	}
	return false
}

// isInternal reports whether a keyword belongs to the state system.
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

// requisiteKeywords are the requisites that modAggregate collects from the chunks it joins.
var requisiteKeywords = [...]string{"onchanges", "onchanges_any", "onfail", "onfail_any", "onfail_all", "onfail_stop", "prereq",
	"prerequired", "watch", "watch_any", "require", "require_any", "listen",
	"onchanges_in", "onfail_in", "prereq_in", "watch_in", "require_in", "listen_in"}
