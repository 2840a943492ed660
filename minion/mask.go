package minion

import (
	"maps"
	"strings"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
)

// mask stands for the value of a secret parameter in what is kept on disk and sent back about a job.
const mask = "**********"

// maskedArgs are the arguments of a job as ArgValue has them, those of each function after a look at its declarations. No
// declaration means that nothing is known, and everything is masked. Of a secret job nothing is left.
func maskedArgs(pj protocol.Job, declared func(fun string) []*modules.Def) []any {
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
			args[i] = maskArgs(declared(pj.Fun[i]), arg)
		}
	}
	pj.Args = args
	return pj.ArgValue()
}

// maskArgs masks the secrets among the arguments of one function. What is masked is copied.
func maskArgs(defs []*modules.Def, arg []any) []any {
	out := make([]any, len(arg))
	place := 0
	for i, a := range arg {
		out[i] = a
		if name, _, ok := protocol.SplitKwarg(text(a)); ok {
			if secretName(defs, name) {
				out[i] = name + "=" + mask
			}
			continue
		}
		if m, ok := kwargs(a); ok {
			out[i] = maskKwargs(defs, m)
			continue
		}
		if secretPlace(defs, place) {
			out[i] = mask
		}
		place++
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// kwargs tells whether an argument is a map of keyword arguments.
func kwargs(v any) (map[string]any, bool) {
	m := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		m = v
	case map[any]any:
		for k, x := range v {
			if name, ok := k.(string); ok {
				m[name] = x
			}
		}
	}
	on, _ := m["__kwarg__"].(bool)
	return m, on
}

func maskKwargs(defs []*modules.Def, m map[string]any) map[string]any {
	m = maps.Clone(m)
	for name := range m {
		if name != "__kwarg__" && secretName(defs, name) {
			m[name] = mask
		}
	}
	return m
}

func secretName(defs []*modules.Def, name string) bool {
	for _, d := range defs {
		for _, p := range d.Params {
			if p.Name == name && p.Secret {
				return true
			}
		}
	}
	return len(defs) == 0
}

func secretPlace(defs []*modules.Def, place int) bool {
	for _, d := range defs {
		n := 0
		for _, p := range d.Params {
			if p.KeywordOnly {
				continue
			}
			if n == place && p.Secret {
				return true
			}
			n++
		}
	}
	return len(defs) == 0
}

// compiled are the declarations that the program itself has for a function, of whichever module the host will use. It asks no
// program of the host, since the job is not allowed yet.
func (d *dispatcher) compiled(fun string) (defs []*modules.Def) {
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

// declared are the declarations of the functions of a job that has run. A function that was refused is not looked for.
func (d *dispatcher) declared(e *modules.Env, j *job) func(fun string) []*modules.Def {
	return func(fun string) []*modules.Def {
		if d.refuse(j.ctx, j.link, fun) != nil {
			return d.compiled(fun)
		}
		if def, err := d.registry().Lookup(fun, e); err == nil {
			return []*modules.Def{def}
		}
		return []*modules.Def{{}} // there is no such function, and so no secret of it
	}
}
