package states

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// maxSLS limits a state file, in bytes, before it is read into memory.
const maxSLS = 32 << 20

// A source is where a state file comes from: its URL and the cached copy, both "" if there is no such file.
type source struct{ url, path string }

// fetchSLS fetches a state file into the cache (salt/fileclient.py: get_state). "a.b" is a/b.sls or a/b/init.sls,
// in this order.
func (h *HighState) fetchSLS(ctx context.Context, sls, env string) (source, error) {
	path := strings.ReplaceAll(sls, ".", "/")
	for _, url := range [...]string{"salt://" + path + ".sls", "salt://" + path + "/init.sls"} {
		dest, err := h.env.Files.Cache(ctx, url, env)
		if err != nil {
			return source{}, err
		}
		if dest != "" {
			return source{url, dest}, nil
		}
	}
	return source{}, nil
}

// renderTemplate renders a file; an empty one is an empty dict (salt/template.py: compile_template).
func (h *HighState) renderTemplate(ctx context.Context, path, env, sls string) (any, error) {
	b, err := readLimited(path)
	if err != nil {
		return nil, err
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return &pyobj.Dict{}, nil
	}
	if !utf8.Valid(b) {
		return nil, &modules.PythonError{Type: "UnicodeDecodeError", Msg: "'utf-8' codec can't decode the file " + path}
	}
	if sls != "" {
		if lacks, err := h.lacksGrain(ctx, "SLS '"+env+":"+sls+"'", env, owncode.GrainsIn(string(b))); err != nil {
			return nil, err
		} else if lacks != "" {
			return nil, &modules.RenderError{Msg: lacks, Text: lacks}
		}
	}
	return h.call.Template(ctx, modules.Template{Text: string(b), Pipe: textOf(h.opts["renderer"]), Shebang: true, Path: path, SaltEnv: env, SLS: sls, IsSLS: true,
		Memory: h.memory, Verify: verifyHigh})
}

// readLimited reads a file of at most maxSLS bytes.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSLS+1))
	if err == nil && len(b) > maxSLS {
		err = modules.Errorf("cannot render %s: it is larger than %d bytes", path, maxSLS)
	}
	return b, err
}

// renderState renders a state file and those that it includes (render_state). local is the path of a file of this
// host, "" for one of the file server. mods are the files rendered so far, which are not rendered twice. The texts
// are errors in the files.
func (h *HighState) renderState(ctx context.Context, sls, env string, mods map[string]bool, matches *Sections, local string) (*pyobj.Dict, []string, error) {
	var errs []string
	src := source{path: local}
	if local == "" {
		var err error
		if src, err = h.fetchSLS(ctx, sls, env); err != nil {
			return nil, nil, err
		}
		if src.path == "" {
			return &pyobj.Dict{}, []string{"Specified SLS " + sls + " in saltenv " + env + " is not available on the salt master or through a configured fileserver"}, nil
		}
	} else if info, err := os.Stat(local); err != nil || !info.Mode().IsRegular() {
		return &pyobj.Dict{}, []string{"Specified SLS " + sls + " on local filesystem cannot be found."}, nil
	}
	data, err := h.renderTemplate(ctx, src.path, env, sls)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		msg, trace := renderingFailed(sls, env, err)
		errs = append(errs, msg+trace)
		h.env.Logger().Log(ctx, levelCritical, msg)
		data = nil
	}
	if mods != nil {
		mods[env+":"+sls] = true
	}
	h.processed[sls] = true
	if !pyobj.Truth(data) {
		return &pyobj.Dict{}, errs, nil
	}
	state, ok := data.(*pyobj.Dict)
	if !ok {
		errs = append(errs, "SLS "+sls+" does not render to a dictionary")
		if len(mods) == 1 || matches != nil {
			errs = append(errs, "Error when rendering state with contents: "+pyobj.Str(data))
		}
		return &pyobj.Dict{}, errs, nil
	}
	f := &stateFile{h: h, sls: sls, env: env, state: state, errs: errs, mods: mods, matches: matches, init: strings.HasSuffix(src.url, "/init.sls")}
	if err := f.compileFile(ctx); err != nil {
		return nil, nil, err
	}
	return state, f.errs, nil
}

// levelCritical is Salt's log level CRITICAL, which slog does not have.
const levelCritical = slog.LevelError + 4

// renderingFailed returns the error text for a file that cannot be rendered, and the traceback that follows it in
// the result.
func renderingFailed(sls, env string, err error) (msg, trace string) {
	var render *modules.RenderError
	if errors.As(err, &render) {
		return "Rendering SLS '" + env + ":" + sls + "' failed: " + render.Error(), ""
	}
	_, msg = exceptionOf(err)
	return "Rendering SLS " + sls + " failed, render error: " + msg, "\n" + tracebackText(err)
}

// A stateFile is a state file between rendering and high data. Its methods are the steps of compileFile.
type stateFile struct {
	h        *HighState
	sls, env string
	init     bool // the init.sls of a directory, from which "." means the directory itself
	state    *pyobj.Dict
	errs     []string
	mods     map[string]bool
	matches  *Sections
}

func (f *stateFile) addError(parts ...string) { f.errs = append(f.errs, strings.Join(parts, "")) }

// compileFile brings the file into the form of high data and merges the files that it includes. Order numbers come
// last: included states were numbered before and so run first.
func (f *stateFile) compileFile(ctx context.Context) error {
	var include []any
	if v, ok := f.state.Get("include"); ok {
		if list, ok := v.(*pyobj.List); ok {
			f.state.Delete("include")
			include = list.Items
		} else {
			f.addError("Include Declaration in SLS ", f.sls, " is not formed as a list")
		}
	}
	f.moveExtend()
	f.moveExclude()
	f.expandDeclarations()
	for _, inc := range include {
		if err := f.includeSLS(ctx, inc); err != nil {
			return err
		}
	}
	f.assignOrder()
	return nil
}

// moveExtend moves the extensions of the file to __extend__ (_handle_extend). They are merged when all files are
// rendered, since the state that one extends may come from any file.
func (f *stateFile) moveExtend() {
	v, ok := f.state.Delete("extend")
	if !ok {
		return
	}
	ext, ok := v.(*pyobj.Dict)
	if !ok {
		f.addError("Extension value in SLS '", f.sls, "' is not a dictionary")
		return
	}
	for name, body := range ext.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok {
			f.addError("Extension name '", pyobj.Str(name), "' in SLS '", f.sls, "' is not a dictionary")
			continue
		}
		f.setOrigin(b)
		for _, k := range b.Keys() {
			key, _ := k.(string)
			if list, ok := b.Value(k).(*pyobj.List); ok && !strings.HasPrefix(key, "_") {
				splitFunction(b, key, list)
			}
		}
	}
	f.appendList("__extend__", ext)
}

// appendList adds to one of the lists that belong to the whole high data.
func (f *stateFile) appendList(key string, more ...any) {
	list, _ := f.state.Value(key).(*pyobj.List)
	if list == nil {
		list = pyobj.NewList()
		_ = f.state.Set(key, list)
	}
	list.Items = append(list.Items, more...)
}

// setOrigin notes in a body which file it comes from.
func (f *stateFile) setOrigin(body *pyobj.Dict) {
	if !body.Has("__sls__") {
		_ = body.Set("__sls__", f.sls)
	}
	if !body.Has("__env__") {
		_ = body.Set("__env__", f.env)
	}
}

// splitFunction turns "file.managed": [...] into "file": [..., "managed"].
func splitFunction(body *pyobj.Dict, key string, list *pyobj.List) (state string, split bool) {
	comps := strings.Split(key, ".")
	if len(comps) < 2 {
		return key, false
	}
	body.Delete(key)
	_ = body.Set(comps[0], list)
	list.Items = append(list.Items, comps[1])
	return comps[0], true
}

// moveExclude moves the exclusions of the file to __exclude__ (_handle_exclude).
func (f *stateFile) moveExclude() {
	v, ok := f.state.Delete("exclude")
	if !ok {
		return
	}
	if _, ok := v.(*pyobj.List); !ok {
		f.addError("Exclude Declaration in SLS ", f.sls, " is not formed as a list")
	}
	f.appendList("__exclude__", listItems(v)...)
}

// expandDeclarations brings every state into its long form (_handle_state_decls): "id: pkg.installed" and
// "pkg.installed: [...]" become a state with its function in the list.
func (f *stateFile) expandDeclarations() {
	for _, name := range f.state.Keys() {
		v := f.state.Value(name)
		body, ok := v.(*pyobj.Dict)
		if !ok {
			if name == "__extend__" || name == "__exclude__" {
				continue
			}
			if short, ok := v.(string); ok && strings.Contains(short, ".") {
				comps := strings.Split(short, ".")
				_ = f.state.Set(name, pyobj.NewDict("__sls__", f.sls, "__env__", f.env, comps[0], pyobj.NewList(comps[1])))
				continue
			}
			f.addError("ID ", pyobj.Str(name), " in SLS ", f.sls, " is not a dictionary")
			continue
		}
		seen := map[string]bool{}
		for _, k := range body.Keys() {
			key, _ := k.(string)
			list, ok := body.Value(k).(*pyobj.List)
			if !ok || strings.HasPrefix(key, "_") {
				continue
			}
			if head, _, dotted := strings.Cut(key, "."); dotted {
				if seen[head] {
					f.addError("ID '", pyobj.Str(name), "' in SLS '", f.sls, "' contains multiple state declarations of the same type")
					continue
				}
				key, _ = splitFunction(body, key, list)
			}
			seen[key] = true
		}
		f.setOrigin(body)
	}
}

// assignOrder gives every state without an order the next number (_handle_iorder), so that states run in the order
// of the file. The option state_auto_order: False leaves them to sort by name.
func (f *stateFile) assignOrder() {
	if !pytext.Truth(f.h.opts["state_auto_order"]) {
		return
	}
	for _, body := range f.state.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok {
			switch body.(type) {
			case string, *pyobj.List, pyobj.Tuple:
				continue
			}
			f.h.env.Logger().Log(context.Background(), levelCritical, "Could not render SLS "+f.sls+". Syntax error detected.")
			return // as in Salt, the states that follow get no order
		}
		for k, run := range b.All() {
			key, isText := k.(string)
			list, ok := run.(*pyobj.List)
			if !isText || !ok || strings.HasPrefix(key, "_") {
				continue
			}
			if !slices.ContainsFunc(list.Items, func(arg any) bool {
				d, ok := arg.(*pyobj.Dict)
				return ok && firstKey(d) == "order"
			}) {
				list.Items = append(list.Items, pyobj.NewDict("order", f.h.iorder))
				f.h.iorder++
			}
		}
	}
}

// expandTemplate is like expandDeclarations for a template that is not an SLS file (State.render_template): it has
// neither SLS nor environment, and Salt's error texts differ.
func (f *stateFile) expandTemplate() []string {
	for _, name := range f.state.Keys() {
		body, ok := f.state.Value(name).(*pyobj.Dict)
		if !ok {
			short, ok := f.state.Value(name).(string)
			if !ok {
				continue
			}
			if comps := strings.Split(short, "."); len(comps) > 1 {
				_ = f.state.Set(name, pyobj.NewDict(comps[0], pyobj.NewList(comps[1])))
				continue
			}
			f.addError("ID ", pyobj.Str(name), " in template ", f.sls, " is not a dictionary")
			continue
		}
		keys := make([]string, 0, body.Len())
		for _, k := range body.Keys() {
			if key, ok := k.(string); ok {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		seen := map[string]bool{}
		for _, key := range keys {
			if strings.HasPrefix(key, "_") {
				continue
			}
			v := body.Value(key)
			if v == nil {
				f.addError("ID '", pyobj.Str(name), "' in template ", f.sls, " contains a short declaration (", key,
					") with a trailing colon. When not passing any arguments to a state, the colon must be omitted.")
				continue
			}
			list, ok := v.(*pyobj.List)
			if !ok {
				continue
			}
			if head, _, dotted := strings.Cut(key, "."); dotted {
				if seen[head] {
					f.addError("ID '", pyobj.Str(name), "' in template '", f.sls, "' contains multiple state declarations of the same type")
					continue
				}
				key, _ = splitFunction(body, key, list)
			}
			seen[key] = true
		}
	}
	return f.errs
}
