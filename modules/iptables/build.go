package iptables

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// stateKeywords are arguments of states that are not options of a rule.
const stateKeywords = " check_cmd cmd_opts_exclude creates failhard fire_event fun listen listen_in onchanges onchanges_any onchanges_in " +
	"onfail onfail_all onfail_any onfail_in onfail_stop onlyif order parallel prereq prereq_in prerequired reload_grains " +
	"reload_modules reload_pillar require require_any require_in retry runas runas_password saltenv state umask unless use " +
	"use_in watch watch_any watch_in name chain save table "

// builder makes a rule out of options; those that it has used are gone from the map.
type builder struct {
	kw    map[string]any
	parts []string
}

func (b *builder) add(parts ...string) { b.parts = append(b.parts, strings.Join(parts, "")) }

// take removes an option and reports whether it was there.
func (b *builder) take(name string) (any, bool) {
	v, ok := b.kw[name]
	delete(b.kw, name)
	return v, ok
}

// negated splits a leading "!" or "not" off a value. bang is then the "! " to put before the option.
func negated(v any) (bang, text string) {
	text = pytext.Str(v)
	if !strings.HasPrefix(text, "!") && !strings.HasPrefix(text, "not") {
		return "", text
	}
	return "! ", bare(text)
}

// bare removes every "!" and "not" that is followed by a blank.
func bare(text string) string {
	var out strings.Builder
	for text != "" {
		rest, ok := strings.CutPrefix(text, "!")
		if !ok {
			rest, ok = strings.CutPrefix(text, "not")
		}
		if !ok {
			out.WriteByte(text[0])
			text = text[1:]
			continue
		}
		if rest != "" && strings.ContainsAny(rest[:1], " \t\n\r\f\v") {
			rest = rest[1:]
		}
		text = rest
	}
	return out.String()
}

func (b *builder) simple(name, option string) bool {
	v, ok := b.take(name)
	if ok {
		bang, text := negated(v)
		b.add(bang, option, " ", text)
	}
	return ok
}

func buildRule(ctx context.Context, c *modules.Call) (any, error) {
	b := &builder{kw: maps.Clone(c.Keywords)}
	if v, ok := b.take("target"); ok {
		b.kw["jump"] = v
	}
	for k := range b.kw {
		if strings.HasPrefix(k, "__") || strings.Contains(stateKeywords, " "+k+" ") {
			delete(b.kw, k)
		}
	}
	if text, err := b.build(); err != nil || text != "" {
		return text, err
	}
	rule := strings.Join(b.parts, " ")
	if !c.Bool("full") {
		return rule, nil
	}
	if text := missing(c, "table", "chain", "command"); text != "" {
		return text, nil
	}
	command := c.Str("command")
	flag := "--"
	if strings.Contains("ACDIRLSFZNXPE", command) {
		flag = "-"
	}
	flags, err := wait(ctx, c)
	if err != nil {
		return nil, err
	}
	return strings.Join([]string{
		program(c, ""), strings.Join(flags, ""), "-t", c.Str("table"), flag + command, c.Str("chain"), pytext.Str(c.Value("position")), rule,
	}, " "), nil
}

// build puts the options in order; the text is Salt's complaint.
func (b *builder) build() (string, error) {
	b.simple("if", "-i")
	b.simple("of", "-o")
	policy := b.kw["match"] == "policy"
	if v, ok := b.kw["proto"]; ok && !policy {
		b.kw["protocol"] = v
		delete(b.kw, "proto")
	}
	protocol := b.simple("protocol", "-p")
	if err := b.matches(policy); err != nil {
		return "", err
	}
	if v, ok := b.take("connstate"); ok {
		b.once("-m state")
		bang, text := negated(v)
		b.add(bang, "--state ", text)
	}
	b.simple("dport", "--dport")
	b.simple("sport", "--sport")
	for _, name := range [...]string{"dports", "sports"} {
		v, ok := b.take(name)
		if !ok {
			continue
		}
		if b.once("-m multiport") && !protocol {
			return "Error: protocol must be specified", nil
		}
		b.ports(name, v)
	}
	if v, ok := b.take("comment"); ok {
		b.once("-m comment")
		b.add(`--comment "`, pytext.Str(v), `"`)
	}
	if v := b.kw["set"]; pytext.Truth(v) {
		b.simple("set", "--match-set")
	}
	after := b.jump()
	for _, key := range slices.Sorted(maps.Keys(b.kw)) {
		flag, value := "--", b.kw[key]
		if len(key) == 1 {
			flag = "-"
		}
		bang, text := negated(value)
		if value == nil || text == "" {
			b.add(bang, flag, key)
		} else {
			b.add(bang, flag, key, " ", text)
		}
	}
	b.parts = append(b.parts, after...)
	return "", nil
}

// once adds a part unless it is in the rule already, and reports whether it was added.
func (b *builder) once(part string) bool {
	if slices.Contains(b.parts, part) {
		return false
	}
	b.add(part)
	return true
}

func (b *builder) matches(policy bool) error {
	if v, ok := b.take("match"); ok {
		list, isList := v.([]any)
		if s, ok := v.(string); ok {
			for _, m := range strings.Split(s, ",") {
				list = append(list, m)
			}
		} else if !isList {
			return modules.NoAttribute(v, "split")
		}
		for _, m := range list {
			text := pytext.Str(m)
			b.add("-m ", text)
			switch strings.TrimSpace(text) {
			case "pknock", "quota2", "recent":
				if name, ok := b.take("name_"); ok {
					b.add("--name ", pytext.Str(name))
				}
			}
		}
		if policy {
			b.simple("proto", "--proto")
		}
	}
	if v, ok := b.take("match-set"); ok {
		list, isList := v.([]any)
		if !isList {
			list = []any{v}
		}
		for _, s := range list {
			bang, text := negated(s)
			b.add("-m set ", bang, "--match-set ", text)
		}
	}
	return nil
}

func (b *builder) ports(name string, v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	texts, not := make([]string, len(list)), false
	for i, x := range list {
		bang, _ := negated(x)
		not = not || bang != ""
		texts[i] = pytext.Str(x)
	}
	if not {
		for i := range texts {
			texts[i] = bare(texts[i])
		}
		b.add("!")
	}
	b.add("--", name, " ", strings.Join(texts, ","))
}

// jump returns the options of the jump target.
func (b *builder) jump() []string {
	var out []string
	for _, name := range strings.Fields(jumpOptions) {
		v, ok := b.take(name)
		if !ok {
			continue
		}
		switch text := pytext.Str(v); {
		case v == nil || v == "":
			out = append(out, "--"+name)
		case strings.ContainsAny(text, " \t\n\r\v\f"):
			out = append(out, "--"+name+` "`+text+`"`)
		default:
			out = append(out, "--"+name+" "+text)
		}
	}
	return out
}
