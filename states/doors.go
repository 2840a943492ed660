package states

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// Verify returns what is wrong with a chunk, in Salt's words; nil if it can run.
func (r *Run) Verify(low *Low) []string { return r.verifyChunk(low) }

// Single runs a chunk by itself, without requisites (state.single). A parallel state is awaited.
func (r *Run) Single(ctx context.Context, low *Low) (map[string]any, error) {
	if err := r.modInit(ctx, low); err != nil {
		return nil, err
	}
	rec, err := r.Call(ctx, low)
	if p, ok := rec["proc"].(*parallel); ok {
		// Salt returns the process object, which cannot leave the minion; we have the result.
		delete(rec, "proc")
		<-p.done
		for k, v := range p.rec {
			rec[k] = v
		}
		plainSubs(rec)
	}
	return rec, err
}

// CallOne runs one of several chunks with those that it requires, and no others (state.sls_id).
func (r *Run) CallOne(ctx context.Context, low *Low, chunks []*Low) (map[string]any, error) {
	r.chunks = chunks
	running := newResults()
	r.running = running
	if err := r.callChunk(ctx, low, running, chunks, 0); err != nil {
		return nil, err
	}
	r.awaitAll(ctx, running)
	return running.plain(), nil
}

// Saltenv returns the environment of the run.
func (r *Run) Saltenv() string { return textOf(r.opts["saltenv"]) }

// RenderFile renders an SLS file of this host; what it includes comes from the file server.
func (h *HighState) RenderFile(ctx context.Context, name, path, env string) (*pyobj.Dict, []string, error) {
	return h.renderState(ctx, name, env, nil, nil, path)
}

// CallText renders and runs the text of an SLS file (State.call_template_str, state.template_str).
func (r *Run) CallText(ctx context.Context, sls string) (any, error) {
	c, err := r.parent.Foreign(r.env, r.exec, &modules.Def{Name: "template_str"}, r.parent.Fun, nil, nil)
	if err != nil {
		return nil, err
	}
	v, err := c.Template(ctx, modules.Template{Text: sls, Pipe: textOf(r.opts["renderer"]), Shebang: true, SaltEnv: "base", IsSLS: true})
	if err != nil {
		return nil, err
	}
	if !pyobj.Truth(v) {
		return v, nil
	}
	high, errs := plainTemplate(v, "<template-str>")
	if errs != nil {
		return nested.Anys(errs), nil
	}
	return r.CallHigh(ctx, high, nil)
}

// plainTemplate converts a template that is not part of a file server to high data (State.render_template). It may
// not include, exclude or extend, since there is nothing to refer to.
func plainTemplate(v any, name string) (*pyobj.Dict, []string) {
	high, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, []string{"Template " + name + " does not render to a dictionary"}
	}
	for _, key := range [...]string{"include", "exclude", "extends"} {
		if high.Has(key) {
			return nil, []string{fmt.Sprintf("The '%s' declaration found on '%s' is invalid when rendering single templates", key, name)}
		}
	}
	f := &stateFile{state: high, sls: name}
	return high, f.expandTemplate()
}

// Usage returns for each environment the SLS files that the top file assigns and those that it does not
// (compile_state_usage, state.state_usage).
func (h *HighState) Usage(ctx context.Context) (any, error) {
	top, err := h.Top(ctx)
	if err != nil {
		return nil, err
	}
	if errs := VerifyTops(top); errs != nil {
		return nested.Anys(errs), nil
	}
	matches, err := h.Matches(ctx, top)
	if err != nil {
		return nil, err
	}
	envs, err := h.listEnvironments(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, env := range envs {
		list, err := h.listSLS(ctx, env)
		if err != nil {
			return nil, err
		}
		assigned := map[string]bool{}
		for _, sls := range matches.list[env] {
			assigned[sls] = true
		}
		used, unused := []any{}, []any{}
		for _, sls := range list {
			if assigned[sls] {
				used = append(used, sls)
			} else {
				unused = append(unused, sls)
			}
		}
		out[env] = map[string]any{"used": used, "unused": unused, "count_all": int64(len(list)), "count_used": int64(len(used)), "count_unused": int64(len(unused))}
	}
	return out, nil
}

// maxCache limits the files that Load reads, in bytes. A damaged or planted file must not use up the memory.
const maxCache = 64 << 20

// Load reads a value that Save or stock Salt wrote.
func Load(path string) (any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCache+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxCache {
		return nil, fmt.Errorf("cannot read %s: it is larger than %d bytes", path, maxCache)
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return v, nil
}

// Save writes a value, plain or ordered, to a file that only its owner can read, since states hold secrets. The
// file is replaced atomically.
func Save(path string, v any) error {
	b, err := payload.Marshal(ordered.ToWire(v))
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return atomicfile.WriteFile(path, b, 0o600)
}
