package matchmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "match": telling whether the minion is in a target.
var Module = &modules.Module{Name: "match", Doc: "Telling whether the minion is in a target.", Funcs: []modules.Def{
	{Name: "compound", Doc: `Tell whether the minion is in a compound target.

tgt
    The target.
minion_id
    Take this id for the minion's.`,
		Example: "salt '*' match.compound 'L@cheese,foo and *'", Params: []modules.Param{{Name: "tgt"}, {Name: "minion_id", Optional: true}}, Run: compound},
	{Name: "data", Doc: "Tell whether the minion's data store has a value.", Example: "salt '*' match.data 'spam:eggs'", Params: []modules.Param{{Name: "tgt"}}, Run: data},
	{Name: "filter_by", Doc: `Return the value of the first target in a map that the minion is in.

lookup
    A map from targets to values.
tgt_type
    How the keys name minions.
minion_id
    Take this id for the minion's.
merge
    A map that is put over the value.
merge_lists
    Join lists when merging rather than replace them.
default
    The key whose value is returned when the minion is in no target.`,
		Example: "salt '*' match.filter_by '{foo*: Foo!, bar*: Bar!}' minion_id=bar03", Params: []modules.Param{
			{Name: "lookup"}, {Name: "tgt_type", Default: "compound", Type: modules.String},
			{Name: "minion_id", Optional: true}, {Name: "merge", Optional: true},
			{Name: "merge_lists", Default: false, Type: modules.Bool},
			{Name: "default", Default: "default", Type: modules.String},
		}, Ordered: true, Run: filterBy},
	{Name: "glob", Doc: `Tell whether the minion's id matches a shell pattern.

tgt
    The pattern.
minion_id
    Take this id for the minion's.`,
		Example: "salt '*' match.glob '*'", Params: []modules.Param{{Name: "tgt"}, {Name: "minion_id", Optional: true}}, Run: glob},
	{Name: "grain", Doc: `Tell whether a grain of the minion matches.

tgt
    The grain's name and a shell pattern for its value.
delimiter
    What stands between the parts of tgt.`,
		Example: `salt '*' match.grain 'os:Ubuntu'
salt '*' match.grain 'ipv6|2001:db8::ff00:42:8329' delimiter='|'`, Params: []modules.Param{{Name: "tgt"}, {Name: "delimiter", Default: ":", Type: modules.String}}, Run: grain},
	{Name: "grain_pcre", Doc: `Tell whether a grain of the minion matches a regular expression.

tgt
    The grain's name and the expression for its value.
delimiter
    What stands between the parts of tgt.`,
		Example: "salt '*' match.grain_pcre 'os:Fedo.*'", Params: []modules.Param{{Name: "tgt"}, {Name: "delimiter", Default: ":", Type: modules.String}}, Run: grainPcre},
	{Name: "ifelse", Doc: `Take the arguments in pairs of a target and a value, and return the value of the first target that the minion is in. The last
argument, which has no partner, is returned when there is none.

tgt_type
    How the targets name minions.
minion_id
    Take this id for the minion's.
merge
    A map that is put over the value.
merge_lists
    Join lists when merging rather than replace them.`,
		Example: "salt '*' match.ifelse 'foo*' 'Foo!' 'bar*' 'Bar!' 'neither' minion_id=bar03", Params: []modules.Param{
			{Name: "tgt_type", Default: "compound", Type: modules.String, KeywordOnly: true},
			{Name: "minion_id", Optional: true, KeywordOnly: true}, {Name: "merge", Optional: true, KeywordOnly: true},
			{Name: "merge_lists", Default: false, Type: modules.Bool, KeywordOnly: true},
		}, Args: "args", Ordered: true, Run: ifelse},
	{Name: "ipcidr", Doc: "Tell whether the minion has an address, or one in a network.", Example: "salt '*' match.ipcidr '192.0.2.0/24'", Params: []modules.Param{{Name: "tgt"}}, Run: ipcidr},
	{Name: "list", Python: "list_", Doc: `Tell whether the minion is in a list of ids.

tgt
    The ids, a list or separated by commas.
minion_id
    Take this id for the minion's.`,
		Example: "salt '*' match.list 'server1,server2'", Params: []modules.Param{{Name: "tgt"}, {Name: "minion_id", Optional: true}}, Run: list},
	{Name: "pcre", Doc: `Tell whether the minion's id matches a regular expression.

tgt
    The expression.
minion_id
    Take this id for the minion's.`,
		Example: "salt '*' match.pcre '.*'", Params: []modules.Param{{Name: "tgt"}, {Name: "minion_id", Optional: true}}, Run: pcre},
	{Name: "pillar", Doc: `Tell whether a value in the minion's pillar matches.

tgt
    The key and a shell pattern for its value.
delimiter
    What stands between the parts of tgt.`,
		Example: "salt '*' match.pillar 'cheese:foo'", Params: []modules.Param{{Name: "tgt"}, {Name: "delimiter", Default: ":", Type: modules.String}}, Run: pillar},
	{Name: "pillar_pcre", Doc: `Tell whether a value in the minion's pillar matches a regular expression.

tgt
    The key and the expression for its value.
delimiter
    What stands between the parts of tgt.`,
		Example: "salt '*' match.pillar_pcre 'cheese:(swiss|american)'", Params: []modules.Param{{Name: "tgt"}, {Name: "delimiter", Default: ":", Type: modules.String}}, Run: pillarPcre},
	{Name: "search_by", Doc: `Return the keys of a map that have a target in their list which the minion is in.

lookup
    A map from keys to lists of targets.
tgt_type
    How the targets name minions.
minion_id
    Take this id for the minion's.`,
		Example: "salt '*' match.search_by '{web: [node1, node2], db: [node2, node]}'", Params: []modules.Param{
			{Name: "lookup"}, {Name: "tgt_type", Default: "compound", Type: modules.String},
			{Name: "minion_id", Optional: true},
		}, Ordered: true, Run: searchBy},
}}
