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

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// maxSLS bounds a state file, in bytes.
const maxSLS = 32 << 20

// source is where a state file is: its URL and the copy of it here, both "" if there is none.
type source struct{ url, path string }

// get fetches a state file (salt/fileclient.py: get_state).
func (h *HighState) get(ctx context.Context, sls, env string) (source, error) {
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

// template renders a file; an empty one is an empty dict (salt/template.py: compile_template).
func (h *HighState) template(ctx context.Context, path, env, sls string) (any, error) {
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
	return h.call.Template(ctx, modules.Template{Text: string(b), Pipe: text(h.opts["renderer"]), Shebang: true, Path: path, SaltEnv: env, SLS: sls, IsSLS: true,
		Memory: h.memory, Verify: verifyHigh})
}

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

// renderState renders a state file and what it includes (render_state). local is the path of a file of this host.
func (h *HighState) renderState(ctx context.Context, sls, env string, mods map[string]bool, matches *Sections, local string) (*pyobj.Dict, []string, error) {
	var errs []string
	src := source{path: local}
	if local == "" {
		var err error
		if src, err = h.get(ctx, sls, env); err != nil {
			return nil, nil, err
		}
		if src.path == "" {
			return &pyobj.Dict{}, []string{"Specified SLS " + sls + " in saltenv " + env + " is not available on the salt master or through a configured fileserver"}, nil
		}
	} else if info, err := os.Stat(local); err != nil || !info.Mode().IsRegular() {
		return &pyobj.Dict{}, []string{"Specified SLS " + sls + " on local filesystem cannot be found."}, nil
	}
	data, err := h.template(ctx, src.path, env, sls)
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
	if err := f.take(ctx); err != nil {
		return nil, nil, err
	}
	return state, f.errs, nil
}

// levelCritical is Salt's log level CRITICAL.
const levelCritical = slog.LevelError + 4

// renderingFailed is the text for a file that cannot be rendered, and the traceback that follows it in the result.
func renderingFailed(sls, env string, err error) (msg, trace string) {
	var render *modules.RenderError
	if errors.As(err, &render) {
		return "Rendering SLS '" + env + ":" + sls + "' failed: " + render.Error(), ""
	}
	_, msg = exception(err)
	return "Rendering SLS " + sls + " failed, render error: " + msg, "\n" + traceback(err)
}

// stateFile is a state file while it is read.
type stateFile struct {
	h        *HighState
	sls, env string
	init     bool // it is the init.sls of a directory
	state    *pyobj.Dict
	errs     []string
	mods     map[string]bool
	matches  *Sections
}

func (f *stateFile) fail(parts ...string) { f.errs = append(f.errs, strings.Join(parts, "")) }

// take brings the file into the form of high data and merges what it includes.
func (f *stateFile) take(ctx context.Context) error {
	var include []any
	if v, ok := f.state.Get("include"); ok {
		if list, ok := v.(*pyobj.List); ok {
			f.state.Delete("include")
			include = list.Items
		} else {
			f.fail("Include Declaration in SLS ", f.sls, " is not formed as a list")
		}
	}
	f.extend()
	f.exclude()
	f.declarations()
	for _, inc := range include {
		if err := f.include(ctx, inc); err != nil {
			return err
		}
	}
	f.order()
	return nil
}

// extend sets the extensions of the file aside (_handle_extend).
func (f *stateFile) extend() {
	v, ok := f.state.Delete("extend")
	if !ok {
		return
	}
	ext, ok := v.(*pyobj.Dict)
	if !ok {
		f.fail("Extension value in SLS '", f.sls, "' is not a dictionary")
		return
	}
	for name, body := range ext.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok {
			f.fail("Extension name '", pyobj.Str(name), "' in SLS '", f.sls, "' is not a dictionary")
			continue
		}
		f.origin(b)
		for _, k := range b.Keys() {
			key, _ := k.(string)
			if list, ok := b.Value(k).(*pyobj.List); ok && !strings.HasPrefix(key, "_") {
				splitFunction(b, key, list)
			}
		}
	}
	f.aside("__extend__", ext)
}

// aside adds to one of the lists that belong to the whole high data.
func (f *stateFile) aside(key string, more ...any) {
	list, _ := f.state.Value(key).(*pyobj.List)
	if list == nil {
		list = pyobj.NewList()
		_ = f.state.Set(key, list)
	}
	list.Items = append(list.Items, more...)
}

// origin notes where a body is from.
func (f *stateFile) origin(body *pyobj.Dict) {
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

// exclude sets the exclusions of the file aside (_handle_exclude).
func (f *stateFile) exclude() {
	v, ok := f.state.Delete("exclude")
	if !ok {
		return
	}
	if _, ok := v.(*pyobj.List); !ok {
		f.fail("Exclude Declaration in SLS ", f.sls, " is not formed as a list")
	}
	f.aside("__exclude__", items(v)...)
}

// declarations brings every state into its long form (_handle_state_decls).
func (f *stateFile) declarations() {
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
			f.fail("ID ", pyobj.Str(name), " in SLS ", f.sls, " is not a dictionary")
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
					f.fail("ID '", pyobj.Str(name), "' in SLS '", f.sls, "' contains multiple state declarations of the same type")
					continue
				}
				key, _ = splitFunction(body, key, list)
			}
			seen[key] = true
		}
		f.origin(body)
	}
}

// order gives every state without an order the next one (_handle_iorder).
func (f *stateFile) order() {
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
			return // as in Salt, what follows gets no order
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

// alone is declarations for a template that is no SLS file: it has neither SLS nor environment, and other words for its errors.
func (f *stateFile) alone() []string {
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
			f.fail("ID ", pyobj.Str(name), " in template ", f.sls, " is not a dictionary")
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
				f.fail("ID '", pyobj.Str(name), "' in template ", f.sls, " contains a short declaration (", key,
					") with a trailing colon. When not passing any arguments to a state, the colon must be omitted.")
				continue
			}
			list, ok := v.(*pyobj.List)
			if !ok {
				continue
			}
			if head, _, dotted := strings.Cut(key, "."); dotted {
				if seen[head] {
					f.fail("ID '", pyobj.Str(name), "' in template '", f.sls, "' contains multiple state declarations of the same type")
					continue
				}
				key, _ = splitFunction(body, key, list)
			}
			seen[key] = true
		}
	}
	return f.errs
}
