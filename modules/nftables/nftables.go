// Package nftables is Salt's execution module "nftables". Salt's source: salt/modules/nftables.py.
package nftables

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// nftables.delete differs: it deletes the rule. Stock fails always: by a position since it looks for the rule None, by a rule since
// it gives nft the whole answer of get_rule_handle.
// nftables.get_policy differs: it returns the policy of the chain. Stock answers None always, since it looks in the wrong place.

func available(e *modules.Env) (bool, string) {
	return e.Which("nft") != "", "The nftables execution module failed to load: nftables is not installed."
}

// value returns an argument in the form of Python's format.
func value(c *modules.Call, name string) string { return pytext.Str(c.Value(name)) }

// nft runs nft with a command that is split as a shell splits it.
func nft(ctx context.Context, c *modules.Call, command string) (string, error) {
	return saltcmd.LineText(ctx, c, "nft "+command)
}

// family returns nft's name for the address family of the call.
func family(c *modules.Call) (string, error) {
	switch name := c.Value("family"); name {
	case "ipv4", "ip4", "ip":
		return "ip", nil
	case "ipv6", "ip6":
		return "ip6", nil
	case "inet", "arp", "bridge", "netdev":
		return name.(string), nil
	default:
		return "", &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
	}
}

func answer(ok bool, comment string) map[string]any {
	return map[string]any{"result": ok, "comment": comment}
}

// missing returns the result for the first of the named arguments that was not given, or nil if all were.
func missing(c *modules.Call, names ...string) map[string]any {
	for _, n := range names {
		if !c.Bool(n) {
			return answer(false, strings.ToUpper(n[:1])+n[1:]+" needs to be specified")
		}
	}
	return nil
}

// inFamily ends comments: "table T in family F".
func inFamily(c *modules.Call) string {
	return "table " + value(c, "table") + " in family " + value(c, "family")
}

// hasTable, hasChain and hasRule report whether the object exists. The result of the function says so, too.
func hasTable(ctx context.Context, c *modules.Call) (bool, map[string]any, error) {
	if no := missing(c, "table"); no != nil {
		return false, no, nil
	}
	f, err := family(c)
	if err != nil {
		return false, nil, err
	}
	out, err := nft(ctx, c, "list tables "+f)
	if err != nil {
		return false, nil, err
	}
	what := "Table " + value(c, "table") + " in family " + value(c, "family")
	if strings.Contains(out, "table "+f+" "+value(c, "table")) {
		return true, answer(true, what+" exists"), nil
	}
	return false, answer(false, what+" does not exist"), nil
}

func hasChain(ctx context.Context, c *modules.Call) (bool, map[string]any, error) {
	if no := missing(c, "chain"); no != nil {
		return false, no, nil
	}
	f, err := family(c)
	if err != nil {
		return false, nil, err
	}
	out, err := nft(ctx, c, "list table "+f+" "+value(c, "table"))
	if err != nil {
		return false, nil, err
	}
	what := "Chain " + value(c, "chain") + " in " + inFamily(c)
	if strings.Contains(out, "chain "+value(c, "chain")+" {") {
		return true, answer(true, what+" exists"), nil
	}
	return false, answer(false, what+" does not exist"), nil
}

// needs answers why the call cannot go on: an argument, the table or the chain is missing. nil means it can.
func needs(ctx context.Context, c *modules.Call, args ...string) (map[string]any, error) {
	if no := missing(c, args...); no != nil {
		return no, nil
	}
	if ok, no, err := hasTable(ctx, c); err != nil || !ok {
		return no, err
	}
	if ok, no, err := hasChain(ctx, c); err != nil || !ok {
		return no, err
	}
	return nil, nil
}

func checkTable(ctx context.Context, c *modules.Call) (any, error) {
	_, got, err := hasTable(ctx, c)
	return got, err
}

func checkChain(ctx context.Context, c *modules.Call) (any, error) {
	_, got, err := hasChain(ctx, c)
	return got, err
}

// do runs a command that prints nothing if it works, and answers so.
func do(ctx context.Context, c *modules.Call, command, done, failed string) (any, error) {
	out, err := nft(ctx, c, command)
	if err != nil {
		return nil, err
	}
	if out != "" {
		return answer(false, failed), nil
	}
	return answer(true, done), nil
}

func newTable(ctx context.Context, c *modules.Call) (any, error) {
	there, got, err := hasTable(ctx, c)
	if err != nil || there || !c.Bool("table") {
		return got, err
	}
	return onTable(ctx, c, "add", "created")
}

func deleteTable(ctx context.Context, c *modules.Call) (any, error) {
	there, got, err := hasTable(ctx, c)
	if err != nil || !there {
		return got, err
	}
	return onTable(ctx, c, "delete", "deleted")
}

func onTable(ctx context.Context, c *modules.Call, verb, done string) (any, error) {
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	what := "Table " + value(c, "table") + " in family " + value(c, "family") + " "
	return do(ctx, c, verb+" table "+f+" "+value(c, "table"), what+done, what+"could not be "+done)
}

func newChain(ctx context.Context, c *modules.Call) (any, error) {
	if no := missing(c, "chain"); no != nil {
		return no, nil
	}
	if ok, no, err := hasTable(ctx, c); err != nil || !ok {
		return no, err
	}
	what := "Chain " + value(c, "chain") + " in " + inFamily(c) + " "
	if ok, _, err := hasChain(ctx, c); err != nil || ok {
		return answer(false, what+"already exists"), err
	}
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	command := "-- add chain " + f + " " + value(c, "table") + " " + value(c, "chain")
	if c.Bool("table_type") || c.Bool("hook") || c.Bool("priority") {
		// The priority 0 counts as given, and so does none at all.
		if !c.Bool("table_type") || !c.Bool("hook") || value(c, "priority") == "" {
			return answer(false, "Table_type, hook, and priority required."), nil
		}
		command += ` \{ type ` + value(c, "table_type") + " hook " + value(c, "hook") + " priority " + value(c, "priority") + `\; \}`
	}
	return do(ctx, c, command, what+"created", what+"could not be created")
}

func deleteChain(ctx context.Context, c *modules.Call) (any, error) {
	if no, err := needs(ctx, c, "chain"); err != nil || no != nil {
		return no, err
	}
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	what := "Chain " + value(c, "chain") + " in " + inFamily(c) + " "
	return do(ctx, c, "delete chain "+f+" "+value(c, "table")+" "+value(c, "chain"), what+"deleted", what+"could not be deleted")
}

func flush(ctx context.Context, c *modules.Call) (any, error) {
	if ok, no, err := hasTable(ctx, c); err != nil || !ok {
		return no, err
	}
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	command, what := "flush table "+f+" "+value(c, "table"), "from "+inFamily(c)+"."
	if c.Bool("chain") {
		if ok, no, err := hasChain(ctx, c); err != nil || !ok {
			return no, err
		}
		command, what = "flush chain "+f+" "+value(c, "table")+" "+value(c, "chain"), "from chain "+value(c, "chain")+" in "+inFamily(c)+"."
	}
	return do(ctx, c, command, "Flushed rules "+what, "Failed to flush rules "+what)
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	out, err := nft(ctx, c, "--version")
	if err != nil {
		return nil, err
	}
	f := strings.Fields(out)
	if len(f) < 2 {
		return nil, modules.IndexError()
	}
	return f[1], nil
}

// ruleset asks nft for JSON and returns what it lists; nothing if it does not answer so.
func ruleset(ctx context.Context, c *modules.Call, command string) ([]any, error) {
	out, err := nft(ctx, c, command)
	if err != nil || out == "" {
		return []any{}, err
	}
	v, err := pyjson.Parse([]byte(out))
	if err != nil {
		return []any{}, nil
	}
	m, _ := v.(map[string]any)
	if list, ok := m["nftables"].([]any); ok {
		return list, nil
	}
	return []any{}, nil
}

func listTables(ctx context.Context, c *modules.Call) (any, error) {
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	return tables(ctx, c, f)
}

func tables(ctx context.Context, c *modules.Call, family string) ([]any, error) {
	list, err := ruleset(ctx, c, "--json --numeric --numeric --numeric list tables "+family)
	found := []any{}
	for _, x := range list {
		if m, ok := x.(map[string]any); ok && m["metainfo"] == nil {
			found = append(found, m["table"])
		}
	}
	return found, err
}

func getRules(ctx context.Context, c *modules.Call) (any, error) {
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	texts, err := rules(ctx, c, f)
	if err != nil {
		return nil, err
	}
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list, nil
}

// rules returns the rules of a family, as one text for each table.
func rules(ctx context.Context, c *modules.Call, family string) ([]string, error) {
	list, err := tables(ctx, c, family)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, x := range list {
		table, _ := x.(map[string]any)
		out, err := nft(ctx, c, "--numeric --numeric --numeric list table "+family+" "+pytext.Str(table["name"]))
		if err != nil {
			return nil, err
		}
		texts = append(texts, out)
	}
	return texts, nil
}

func getRulesJSON(ctx context.Context, c *modules.Call) (any, error) {
	return rulesJSON(ctx, c)
}

func rulesJSON(ctx context.Context, c *modules.Call) ([]any, error) {
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	return ruleset(ctx, c, "--numeric --numeric --numeric --json list ruleset "+f)
}

// file returns the path of this system's rules, or "" if it is unknown.
func file(c *modules.Call) string {
	switch c.Grain("os_family") {
	case "RedHat", "Arch", "Debian":
		return "/etc/nftables"
	}
	if c.Grain("os") == "Gentoo" {
		return "/etc/nftables"
	}
	return ""
}

// chosen returns the file that the argument names, or otherwise the system's.
func chosen(c *modules.Call, arg string) (string, error) {
	name := c.Value(arg)
	if !pytext.Truth(name) && file(c) != "" {
		name = file(c)
	}
	path, ok := name.(string)
	if !ok {
		return "", &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(name)}
	}
	return path, nil
}

func getSavedRules(_ context.Context, c *modules.Call) (any, error) {
	path, err := chosen(c, "conf_file")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	rules := []any{}
	for _, line := range strings.SplitAfter(string(text), "\n") {
		if s := pytext.Strip(line); s != "" && !strings.HasPrefix(s, "#") {
			rules = append(rules, line)
		}
	}
	return rules, nil
}

func save(ctx context.Context, c *modules.Call) (any, error) {
	path, err := chosen(c, "filename")
	if err != nil {
		return nil, err
	}
	text := "#! nft -f\n"
	for _, f := range [...]string{"ip", "ip6", "inet", "arp", "bridge", "netdev"} {
		list, err := rules(ctx, c, f)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			text += "\n" + strings.Join(list, "\n")
		}
	}
	text += "\n"
	if info, err := os.Stat(c.Path(path)); err == nil && info.IsDir() {
		path += "/salt-all-in-one.nft"
	}
	_, err = os.Stat(c.Path(filepath.Dir(path)))
	if err == nil {
		err = atomicfile.Replace(c.Path(path), []byte(text), 0o644)
	} else {
		err = &os.PathError{Op: "open", Path: path, Err: err.(*os.PathError).Err}
	}
	if err != nil {
		reason, _ := modules.OSErrorText(err)
		return nil, modules.Errorf("Problem writing to configuration file: %s", reason)
	}
	return text, nil
}

// baseChain returns nft's description of a chain in the call's table, or nil if there is no such chain.
func baseChain(ctx context.Context, c *modules.Call) (map[string]any, error) {
	list, err := rulesJSON(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		m, _ := x.(map[string]any)
		chain, _ := m["chain"].(map[string]any)
		if chain != nil && chain["table"] == c.Value("table") && chain["name"] == c.Value("chain") {
			return chain, nil
		}
	}
	return nil, nil
}

func getPolicy(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("chain") {
		return "Error: Chain needs to be specified", nil
	}
	chain, err := baseChain(ctx, c)
	return chain["policy"], err
}

func setPolicy(ctx context.Context, c *modules.Call) (any, error) {
	if no := missing(c, "chain", "policy"); no != nil {
		return "Error: " + no["comment"].(string), nil
	}
	chain, err := baseChain(ctx, c)
	if err != nil {
		return nil, err
	}
	if chain["type"] == nil || chain["hook"] == nil || chain["prio"] == nil {
		return false, nil
	}
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	r, err := saltcmd.Line(ctx, c, "nft add chain "+f+" "+value(c, "table")+" "+value(c, "chain")+` "{ type `+pytext.Str(chain["type"])+
		" hook "+pytext.Str(chain["hook"])+" priority "+pytext.Str(chain["prio"])+"; policy "+value(c, "policy")+`; }"`)
	return r.Retcode == 0, err
}
