package iptables

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "iptables".
var Module = &modules.Module{Name: "iptables", Doc: "The packet filter, through iptables.", Available: available, Funcs: []modules.Def{
	{Name: "append", Doc: `Append a rule to a chain, unless it is in it: True if it was appended.

rule
    The rule as on the command line of iptables, without chain.`,
		Example: "salt '*' iptables.append filter INPUT rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: appendRule},
	{Name: "build_rule", Doc: `Return a rule for the given options, as they are called in states.

table, chain, command, position
    What the whole command line needs.
full
    Return the whole command line.

A value that begins with ! or not is negated. match, match-set, dports and sports can be lists, connstate is the option state,
jump options without a value are given an empty one.`,
		Example: `salt '*' iptables.build_rule match=state connstate=RELATED,ESTABLISHED jump=ACCEPT
salt '*' iptables.build_rule filter INPUT command=I position=3 full=True source='!127.0.0.1' jump=DROP`, Params: []modules.Param{
			{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "command", Optional: true},
			{Name: "position", Default: ""}, {Name: "full", Optional: true}, {Name: "family", Default: "ipv4"},
		}, Kwargs: "kwargs", Run: buildRule},
	{Name: "check", Doc: "Tell whether a chain has a rule.", Example: "salt '*' iptables.check filter INPUT rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: check},
	{Name: "check_chain", Doc: "Tell whether a table has a chain.", Example: "salt '*' iptables.check_chain filter INPUT", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: checkChain},
	{Name: "delete", Doc: "Delete a rule, given as itself or by its position. The result is what iptables complained of.", Example: "salt '*' iptables.delete filter INPUT position=3", Params: []modules.Param{
		{Name: "table"}, {Name: "chain", Optional: true}, {Name: "position", Optional: true}, {Name: "rule", Optional: true},
		{Name: "family", Default: "ipv4"},
	}, Run: deleteRule},
	{Name: "delete_chain", Doc: "Delete a chain: True, or what iptables complained of.", Example: "salt '*' iptables.delete_chain filter CUSTOM_CHAIN", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: deleteChain},
	{Name: "flush", Doc: "Delete all rules of a chain, or of all chains. The result is what iptables complained of.", Example: "salt '*' iptables.flush filter INPUT", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Default: ""}, {Name: "family", Default: "ipv4"}}, Run: flush},
	{Name: "get_policy", Doc: "Return the policy of a chain.", Example: "salt '*' iptables.get_policy filter INPUT", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: getPolicy},
	{Name: "get_rules", Doc: "Return all tables, chains and rules that are in force.", Example: "salt '*' iptables.get_rules", Params: []modules.Param{{Name: "family", Default: "ipv4"}}, Run: getRules},
	{Name: "get_saved_policy", Doc: "Return the policy of a chain in the file of rules.", Example: "salt '*' iptables.get_saved_policy filter INPUT", Params: []modules.Param{
		{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "conf_file", Optional: true},
		{Name: "family", Default: "ipv4"},
	}, Run: getSavedPolicy},
	{Name: "get_saved_rules", Doc: "Return all tables, chains and rules in the file of rules.", Example: "salt '*' iptables.get_saved_rules", Params: []modules.Param{{Name: "conf_file", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: getSavedRules},
	{Name: "insert", Doc: "Insert a rule at a position of a chain, unless it is in it. A negative position counts from the end.", Example: "salt '*' iptables.insert filter INPUT position=3 rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'", Params: []modules.Param{
		{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "position", Optional: true},
		{Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"},
	}, Run: insert},
	{Name: "new_chain", Doc: "Make a chain: True, or what iptables complained of.", Example: "salt '*' iptables.new_chain filter CUSTOM_CHAIN", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: newChain},
	{Name: "save", Doc: `Write the rules that are in force to a file, by default the one that the system reads at boot.

Lines that match an expression of the option iptables.save_filters are left out.`,
		Example: "salt '*' iptables.save /etc/sysconfig/iptables", Params: []modules.Param{{Name: "filename", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: save},
	{Name: "set_policy", Doc: "Set the policy of a chain. The result is what iptables complained of.", Example: "salt '*' iptables.set_policy filter INPUT ACCEPT", Params: []modules.Param{
		{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "policy", Optional: true}, {Name: "family", Default: "ipv4"},
	}, Run: setPolicy},
	{Name: "version", Doc: "Return the version of iptables.", Example: "salt '*' iptables.version", Params: []modules.Param{{Name: "family", Default: "ipv4"}}, Run: version},
}}
