package nftables

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "nftables".
var Module = &modules.Module{Name: "nftables", Doc: "Tables, chains and rules of the packet filter nftables.", Available: available, Funcs: []modules.Def{
	{Name: "append", Doc: "Add a rule at the end of a chain, if the chain does not have it.", Example: "salt '*' nftables.append filter input 'tcp dport 22 accept'", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: appendRule},
	{Name: "build_rule", Doc: `Make the text of a rule of options that are named as those of the state module are.

full
    The text true for the whole command.`,
		Example: "salt '*' nftables.build_rule connstate=established jump=accept", Params: []modules.Param{{Name: "table", Optional: true}, {Name: "chain", Optional: true}, {Name: "command", Optional: true}, {Name: "position", Default: ""}, {Name: "full", Optional: true}, {Name: "family", Default: "ipv4"}}, Kwargs: "kwargs", Run: buildRule},
	{Name: "check", Doc: "Tell whether a chain has a rule.", Example: "salt '*' nftables.check filter input 'tcp dport 22 accept'", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: check},
	{Name: "check_chain", Doc: "Tell whether a table has a chain.", Example: "salt '*' nftables.check_chain filter input", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: checkChain},
	{Name: "check_table", Doc: "Tell whether there is a table.", Example: "salt '*' nftables.check_table filter", Params: []modules.Param{{Name: "table", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: checkTable},
	{Name: "delete", Doc: `Take a rule out of a chain, by its text or its handle.

position
    The handle.`,
		Example: "salt '*' nftables.delete filter input rule='tcp dport 22 accept'", Params: []modules.Param{{Name: "table"}, {Name: "chain", Optional: true}, {Name: "position", Optional: true}, {Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: deleteRule},
	{Name: "delete_chain", Doc: "Delete a chain.", Example: "salt '*' nftables.delete_chain filter input", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: deleteChain},
	{Name: "delete_table", Doc: "Delete a table.", Example: "salt '*' nftables.delete_table filter", Params: []modules.Param{{Name: "table"}, {Name: "family", Default: "ipv4"}}, Run: deleteTable},
	{Name: "flush", Doc: "Take all rules out of a chain, or out of a table.", Example: "salt '*' nftables.flush filter input", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Default: ""}, {Name: "family", Default: "ipv4"}}, Run: flush},
	{Name: "get_policy", Doc: "Return the policy of a chain.", Example: "salt '*' nftables.get_policy filter input", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: getPolicy},
	{Name: "get_rule_handle", Doc: "Return the handle of a rule.", Example: "salt '*' nftables.get_rule_handle filter input 'tcp dport 22 accept'", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: getRuleHandle},
	{Name: "get_rules", Doc: "Return the rules of all tables of a family, a text for each.", Example: "salt '*' nftables.get_rules ipv6", Params: []modules.Param{{Name: "family", Default: "ipv4"}}, Run: getRules},
	{Name: "get_rules_json", Doc: "Return the rules of all tables of a family as data.", Example: "salt '*' nftables.get_rules_json ipv6", Params: []modules.Param{{Name: "family", Default: "ipv4"}}, Run: getRulesJSON},
	{Name: "get_saved_rules", Doc: "Return the lines of the file of rules.", Example: "salt '*' nftables.get_saved_rules", Params: []modules.Param{{Name: "conf_file", Optional: true}}, Run: getSavedRules},
	{Name: "insert", Doc: `Put a rule at the beginning of a chain or before another rule, if the chain does not have it.

position
    The handle of the other rule.`,
		Example: "salt '*' nftables.insert filter input rule='tcp dport 22 accept'", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "position", Optional: true}, {Name: "rule", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: insertRule},
	{Name: "list_tables", Doc: "Return the tables of a family.", Example: "salt '*' nftables.list_tables ipv6", Params: []modules.Param{{Name: "family", Default: "ipv4"}}, Run: listTables},
	{Name: "new_chain", Doc: `Make a chain.

table_type, hook, priority
    Where packets come into the chain; all of them, or none.`,
		Example: "salt '*' nftables.new_chain filter input table_type=filter hook=input priority=0", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "table_type", Optional: true}, {Name: "hook", Optional: true}, {Name: "priority", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: newChain},
	{Name: "new_table", Doc: "Make a table.", Example: "salt '*' nftables.new_table filter", Params: []modules.Param{{Name: "table"}, {Name: "family", Default: "ipv4"}}, Run: newTable},
	{Name: "save", Doc: "Write the rules of all families to a file.", Example: "salt '*' nftables.save /etc/nftables.rules", Params: []modules.Param{{Name: "filename", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: save},
	{Name: "set_policy", Doc: "Set the policy of a chain.", Example: "salt '*' nftables.set_policy filter input policy=drop", Params: []modules.Param{{Name: "table", Default: "filter"}, {Name: "chain", Optional: true}, {Name: "policy", Optional: true}, {Name: "family", Default: "ipv4"}}, Run: setPolicy},
	{Name: "version", Doc: "Return the version of nft.", Example: "salt '*' nftables.version", Run: version},
}}
