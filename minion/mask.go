package minion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// mask replaces the value of a secret parameter in what is stored on disk and sent back about a job.
const mask = "**********"

// maxJournalText is the maximum length, in bytes, of each text of a job's arguments in the journal. The journal
// only has to show which job was interrupted, so file contents are not needed.
const maxJournalText = 256

// secrecy reports whether a parameter is masked.
type secrecy func(p modules.Param) bool

// journalArgs returns a job's arguments as the journal stores them: secrets and the environment of programs are
// masked, long texts are cut.
func journalArgs(pj protocol.Job, declared func(fun string) []*modules.Def) []any {
	args := maskSecrets(pj, declared,
		func(p modules.Param) bool { return p.Secret || p.Name == "env" || p.Name == "environ" })
	cut, _ := cutTexts(args).([]any)
	return cut
}

// cutTexts returns a copy of v with long texts cut.
func cutTexts(v any) any {
	switch v := v.(type) {
	case string:
		return cutText(v)
	case []byte:
		return cutText(string(v))
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = cutTexts(x)
		}
		return list
	case payload.OrderedMap:
		m := slices.Clone(v)
		for i, p := range m {
			m[i] = payload.Pair{Key: cutTexts(p.Key), Value: cutTexts(p.Value)}
		}
		return m
	}
	return v
}

func cutText(s string) string {
	// guard: journal-texts TestJournalHasNoEnvironmentAndNoLongTexts instead: true
	if len(s) <= maxJournalText {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:maxJournalText], ""), len(s))
}

// maskedArgs returns a job's arguments, in the form of ArgValue, with secrets masked. declared returns a
// function's declarations; without any, all its arguments are masked. A secret job's arguments are left out
// entirely.
func maskedArgs(pj protocol.Job, declared func(fun string) []*modules.Def) []any {
	return maskSecrets(pj, declared, func(p modules.Param) bool { return p.Secret })
}

// maskSecrets is maskedArgs for the parameters that secret selects.
func maskSecrets(pj protocol.Job, declared func(fun string) []*modules.Def, secret secrecy) []any {
	args := make([][]any, len(pj.Args))
	if pj.Secret() {
		for i := range args {
			if len(pj.Args[i]) > 0 {
				args[i] = []any{protocol.SealedText}
			}
		}
		pj.Args = args
		return pj.ArgValue()
	}
	for i, arg := range pj.Args {
		args[i] = arg
		if i < len(pj.Fun) && len(arg) > 0 {
			args[i] = maskArgs(declared(pj.Fun[i]), arg, secret)
		}
	}
	pj.Args = args
	return pj.ArgValue()
}

// maskArgs returns a copy of one function's arguments with the secret ones masked.
func maskArgs(defs []*modules.Def, arg []any, secret secrecy) []any {
	out := make([]any, len(arg))
	place := 0
	for i, a := range arg {
		out[i] = a
		if name, _, ok := protocol.SplitKwarg(textOf(a)); ok {
			if secretName(defs, name, secret) {
				out[i] = name + "=" + mask
			}
			continue
		}
		if m, ok := kwargsOf(a); ok {
			out[i] = maskKwargs(defs, m, secret)
			continue
		}
		if secretPlace(defs, place, secret) {
			out[i] = mask
		}
		place++
	}
	return out
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// kwargsOf returns v as a map of keyword arguments, and whether it is one.
func kwargsOf(v any) (payload.OrderedMap, bool) {
	m, _ := v.(payload.OrderedMap)
	on, _ := m.Get("__kwarg__")
	return m, on == true
}

func maskKwargs(defs []*modules.Def, m payload.OrderedMap, secret secrecy) payload.OrderedMap {
	m = slices.Clone(m)
	for i, p := range m {
		if name, ok := p.Key.(string); !ok ||
			name != "__kwarg__" && secretName(defs, name, secret) {
			m[i].Value = mask
		}
	}
	return m
}

func secretName(defs []*modules.Def, name string, secret secrecy) bool {
	if secret(modules.Param{Name: name}) {
		return true // also for functions that accept any keyword
	}
	for _, d := range defs {
		for _, p := range d.Params {
			if p.Name == name && secret(p) {
				return true
			}
		}
	}
	return len(defs) == 0
}

func secretPlace(defs []*modules.Def, place int, secret secrecy) bool {
	for _, d := range defs {
		n := 0
		for _, p := range d.Params {
			if p.KeywordOnly {
				continue
			}
			if n == place && secret(p) {
				return true
			}
			n++
		}
	}
	return len(defs) == 0
}

// compiledDefs returns the declarations of a function in all compiled modules of that name, whichever of them
// this host would use. It runs no program of the host, because the job is not allowed yet.
func (d *dispatcher) compiledDefs(fun string) (defs []*modules.Def) {
	mod, name, _ := strings.Cut(fun, ".")
	for _, m := range d.m.o.Registry.All() {
		if m.Called() != mod {
			continue
		}
		for i := range m.Funcs {
			if m.Funcs[i].Name == name {
				defs = append(defs, &m.Funcs[i])
			}
		}
	}
	return defs
}

// declaredDefs returns a lookup of the declarations for the functions of a finished job. For a refused function
// it falls back to compiledDefs.
func (d *dispatcher) declaredDefs(e *modules.Env, j *job) func(fun string) []*modules.Def {
	return func(fun string) []*modules.Def {
		if d.m.settings().policy.Refuse(modules.Execution, fun) != nil ||
			d.checkBlackout(j.ctx, j.link, fun) != nil {
			return d.compiledDefs(fun)
		}
		if def, err := d.m.o.Registry.Lookup(fun, e); err == nil {
			return []*modules.Def{def}
		}
		return []*modules.Def{{}} // no such function, so it has no secrets
	}
}
