package nftables

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// hasRule reports whether the chain has the rule of the call, which is a regular expression, as in Salt.
func hasRule(ctx context.Context, c *modules.Call) (bool, map[string]any, error) {
	if no, err := needs(ctx, c, "chain", "rule"); err != nil || no != nil {
		return false, no, err
	}
	f, err := family(c)
	if err != nil {
		return false, nil, err
	}
	out, err := nft(ctx, c, "--handle list chain "+f+" "+value(c, "table")+" "+value(c, "chain"))
	if err != nil {
		return false, nil, err
	}
	found, err := search(loose(c)+" #", out)
	if err != nil {
		return false, nil, err
	}
	what := "Rule " + value(c, "rule") + " in chain " + value(c, "chain") + " in " + inFamily(c)
	if found == nil {
		return false, answer(false, what+" does not exist"), nil
	}
	return true, answer(true, what+" exists"), nil
}

// loose returns a pattern for the rule of the call in which braces are optional: nft omits them around a single
// value.
func loose(c *modules.Call) string {
	return strings.ReplaceAll(strings.ReplaceAll(value(c, "rule"), "{ ", "{? ?"), " }", " ?}?")
}

// search finds a pattern; the result has the places of the match and its groups.
func search(pattern, text string) ([]int, error) {
	re, err := pyre.Compile(pattern, 0)
	if err != nil {
		return nil, &modules.PythonError{Type: "re.error", Msg: err.Error()}
	}
	return re.Search(text)
}

func check(ctx context.Context, c *modules.Call) (any, error) {
	_, got, err := hasRule(ctx, c)
	return got, err
}

func getRuleHandle(ctx context.Context, c *modules.Call) (any, error) {
	if ok, no, err := hasRule(ctx, c); err != nil || !ok {
		return no, err
	}
	handle, err := handleOf(ctx, c, value(c, "rule"))
	if err != nil {
		return nil, err
	}
	if handle == "" {
		return answer(false, "Could not find rule "+value(c, "rule")), nil
	}
	return map[string]any{"result": true, "handle": handle}, nil
}

// handleOf returns the handle of the first rule of the chain that matches, or "" if none does.
func handleOf(ctx context.Context, c *modules.Call, pattern string) (string, error) {
	f, err := family(c)
	if err != nil {
		return "", err
	}
	out, err := nft(ctx, c, "--numeric --numeric --numeric --handle list chain "+f+" "+value(c, "table")+" "+value(c, "chain"))
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(out, "\n") {
		at, err := search(pattern+` # handle (?P<handle>\d+)`, line)
		if err != nil {
			return "", err
		}
		if n := len(at); n >= 4 { // the last group is ours
			return line[at[n-2]:at[n-1]], nil
		}
	}
	return "", nil
}

func appendRule(ctx context.Context, c *modules.Call) (any, error) { return add(ctx, c, "add", "") }

func insertRule(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("position") {
		return add(ctx, c, "insert", "position "+value(c, "position")+" ")
	}
	return add(ctx, c, "insert", "")
}

func add(ctx context.Context, c *modules.Call, verb, position string) (any, error) {
	if no, err := needs(ctx, c, "chain", "rule"); err != nil || no != nil {
		return no, err
	}
	there, _, err := hasRule(ctx, c)
	if err != nil {
		return nil, err
	}
	if there {
		return answer(false, "Rule "+value(c, "rule")+" chain "+value(c, "chain")+" in "+inFamily(c)+" already exists"), nil
	}
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	what := ` rule "` + value(c, "rule") + `" chain ` + value(c, "chain") + " in " + inFamily(c) + "."
	return do(ctx, c, verb+" rule "+f+" "+value(c, "table")+" "+value(c, "chain")+" "+position+value(c, "rule"), "Added"+what, "Failed to add"+what)
}

func deleteRule(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("position") && c.Bool("rule") {
		return answer(false, "Only specify a position or a rule, not both"), nil
	}
	if no, err := needs(ctx, c); err != nil || no != nil {
		return no, err
	}
	handle := value(c, "position")
	if !c.Bool("position") {
		there, _, err := hasRule(ctx, c)
		if err != nil {
			return nil, err
		}
		if !there {
			return answer(false, "Rule "+value(c, "rule")+" chain "+value(c, "chain")+" in "+inFamily(c)+" does not exist"), nil
		}
		if handle, err = handleOf(ctx, c, loose(c)); err != nil {
			return nil, err
		}
	}
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	what := ` rule "` + value(c, "rule") + `" in chain ` + value(c, "chain") + " "
	return do(ctx, c, "delete rule "+f+" "+value(c, "table")+" "+value(c, "chain")+" handle "+handle,
		"Deleted"+what+"in "+inFamily(c)+".", "Failed to delete"+what+" "+inFamily(c))
}

func buildRule(_ context.Context, c *modules.Call) (any, error) {
	f, err := family(c)
	if err != nil {
		return nil, err
	}
	text, err := ruleText(c.Keywords, f)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{"comment": "", "rule": text, "result": false}
	if full := c.Value("full"); full == "True" || full == "true" {
		if no := missing(c, "table", "chain", "command"); no != nil {
			ret["comment"] = no["comment"]
			return ret, nil
		}
		verb, place := value(c, "command"), f+" "+value(c, "table")+" "+value(c, "chain")+" "
		if verb == "Insert" || verb == "insert" || verb == "INSERT" {
			verb = "insert"
			if c.Bool("position") {
				place += "position " + value(c, "position") + " "
			}
		}
		ret["rule"] = "nft " + verb + " rule " + place + text
	}
	if ret["rule"] != "" {
		ret["comment"] = "Successfully built rule"
	}
	ret["result"] = true
	return ret, nil
}

// ruleText makes a rule of options, in the order that nft shows them in.
func ruleText(kw map[string]any, family string) (string, error) {
	var b strings.Builder
	has := func(name string) bool { _, ok := kw[name]; return ok }
	put := func(name, before, after string) {
		if has(name) {
			b.WriteString(before + pytext.Str(kw[name]) + after)
		}
	}
	// either is one of two options that mean the same, the first if it is not empty.
	either := func(a, b, before string) string {
		switch {
		case !has(a) && !has(b):
			return ""
		case pytext.Truth(kw[a]):
			return before + pytext.Str(kw[a]) + " "
		}
		return before + pytext.Str(kw[b]) + " "
	}
	put("if", "meta iifname ", " ")
	put("of", "meta oifname ", " ")
	put("connstate", "ct state { ", " } ")
	put("icmp-type", "icmp type { ", " } ")
	put("icmpv6-type", "icmpv6 type { ", " } ")
	put("pkttype", "meta pkttype { ", " } ")
	if has("counter") {
		b.WriteString("counter ")
	}
	b.WriteString(either("saddr", "source", family+" saddr "))
	b.WriteString(either("daddr", "destination", family+" daddr "))
	for _, port := range [...]string{"dport", "sport"} {
		if has(port) {
			b.WriteString(port + " { " + strings.ReplaceAll(pytext.Str(kw[port]), ":", "-") + " } ")
		}
	}
	for _, port := range [...]string{"dport", "sport"} {
		if has(port + "s") {
			list, err := ports(kw[port+"s"])
			if err != nil {
				return "", err
			}
			b.WriteString(port + " { " + list + " } ")
		}
	}
	target := "jump"
	if has("target") {
		target = "target"
	}
	put(target, "", " ")
	put("j", "", " ")
	b.WriteString(either("redirect-to", "to-port", "redirect to "))
	put("to-ports", "--to-ports ", " ")
	put("to-source", "", " ")
	put("to-destination", "", " ")
	put("reject-with", "reject with ", " ")
	proto := ""
	if has("proto") {
		proto = pytext.Str(kw["proto"])
	}
	text := strings.ReplaceAll(pytext.Strip(b.String()), "dport", proto+" dport")
	return strings.ReplaceAll(text, "sport", proto+" sport"), nil
}

// ports sorts a list of ports from high to low, as nft shows them.
func ports(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", modules.NoAttribute(v, "split")
	}
	var list []int64
	for _, p := range strings.Split(s, ",") {
		n, err := modules.ToInt(p)
		if err != nil {
			return "", err
		}
		list = append(list, n)
	}
	slices.Sort(list)
	slices.Reverse(list)
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = pytext.Str(n)
	}
	return strings.Join(texts, ", "), nil
}
