//go:build unix

package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// plain returns an argument with ordered values converted to plain ones.
func (h *host) plain(name string) any { return pyobj.Plain(h.Value(name)) }

// cacheFile fetches a file to the minion and returns its path here, or "" if there is no such file.
func (h *host) cacheFile(url string, saltenv, sourceHash, verifySSL, useEtag any) (string, error) {
	kwargs := map[string]any{}
	for name, v := range map[string]any{"source_hash": sourceHash, "verify_ssl": verifySSL, "use_etag": useEtag} {
		if v != nil {
			kwargs[name] = v
		}
	}
	v, err := h.ExecKw(h.ctx, "cp.cache_file", []any{url, saltenv}, kwargs)
	if err != nil {
		return "", err
	}
	path, _ := v.(string)
	return path, nil
}

// tempPrefix begins the names of the files that Salt leaves for itself in the directory for temporary files.
const tempPrefix = "__salt.tmp."

func (h *host) tempDir() string {
	return pytemp.DirOf(h.Root, func(name string) string {
		dir, _ := h.Context().Getenv(name)
		return dir
	})
}

// temp writes content to a new file in the directory for temporary files.
func (h *host) temp(content []byte) (string, error) {
	dir := h.tempDir()
	if h.Root != "" {
		if err := os.MkdirAll(h.Path(dir), 0o700); err != nil {
			return "", err
		}
	}
	f, err := os.CreateTemp(h.Path(dir), tempPrefix)
	if err != nil {
		return "", h.named(err, dir)
	}
	name := posixpath.Join(dir, posixpath.Base(f.Name()))
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", h.named(err, name)
	}
	return name, nil
}

// cleanTemp removes a file that temp has created, recognized by its name, unless it is in file_roots.
func (h *host) cleanTemp(path string) {
	if !strings.Contains(path, "/"+tempPrefix) || !strings.HasPrefix(path, posixpath.Join(h.tempDir(), tempPrefix)) {
		return
	}
	roots, _ := h.Opt("file_roots").(map[string]any)
	for _, v := range roots {
		dirs, _ := v.([]any)
		for _, d := range dirs {
			if s, ok := d.(string); ok && strings.HasPrefix(path, s) {
				return
			}
		}
	}
	os.Remove(h.Path(path))
}

func sourceList(h *host) (any, error) {
	source, sum, err := h.sourceList(h.Value("source"), h.Value("source_hash"), h.Value("saltenv"))
	if err != nil {
		return nil, err
	}
	return pyobj.Tuple{source, sum}, nil
}

// chosen is the choice of sourceList, which is cached for the rest of the job.
type chosen struct{ source, sum any }

// sourceList implements file.source_list: it returns the first source of a list that exists, with its hash.
func (h *host) sourceList(source, sum, saltenv any) (any, any, error) {
	all, ok := source.([]any)
	if !ok {
		return source, sum, nil
	}
	key := pytext.Str(source) + "_|-" + pytext.Str(sum) + "_|-" + pytext.Str(saltenv)
	if v, ok := h.Context().Get(key); ok {
		if f, ok := v.(chosen); ok {
			return f.source, f.sum, nil
		}
	}
	s := sources{host: h, env: str(saltenv), files: map[[2]string]bool{}, listed: map[string]bool{}}
	f, err := s.first(all, sum)
	if err != nil {
		return nil, nil, err
	}
	h.Context().Set(key, f)
	return f.source, f.sum, nil
}

// sources looks for files on the master.
type sources struct {
	*host
	env string
	// files are the paths and environments of the files and directories that the master has, listed the environments known.
	files  map[[2]string]bool
	listed map[string]bool
}

// has reports whether the master has a file or directory in an environment.
func (s *sources) has(path, env string) (bool, error) {
	if !s.listed[env] {
		s.listed[env] = true
		for _, fun := range [...]string{"cp.list_master", "cp.list_master_dirs"} {
			v, err := s.Exec(s.ctx, fun, env)
			if err != nil {
				return false, err
			}
			names, _ := v.([]any)
			for _, n := range names {
				s.files[[2]string{str(n), env}] = true
			}
		}
	}
	return s.files[[2]string{path, env}], nil
}

func (s *sources) first(all []any, sum any) (chosen, error) {
	for _, one := range all {
		switch one := one.(type) {
		case map[string]any:
			if len(one) != 1 {
				continue
			}
			for url, own := range one {
				if !pytext.Truth(own) {
					own = sum
				}
				// Salt looks for a path of another environment in the one of the call here.
				if ok, err := s.there(url, s.env); err != nil {
					return chosen{}, err
				} else if ok {
					return chosen{url, own}, nil
				}
			}
		case string:
			_, env := saltPath(one)
			if env == "" {
				env = s.env
			}
			if ok, err := s.there(one, env); err != nil {
				return chosen{}, err
			} else if ok {
				return chosen{one, sum}, nil
			}
		}
	}
	return chosen{}, modules.Errorf("none of the specified sources were found")
}

// there reports whether a source can be fetched.
func (s *sources) there(url, env string) (bool, error) {
	a := parseURL(url)
	switch {
	case a.scheme == "salt":
		path, _ := saltPath(url)
		return s.has(path, env)
	case strings.HasPrefix(a.scheme, "http") || a.scheme == "ftp":
		return s.answers(url)
	case a.scheme == "file":
		return s.exists(a.host) || s.exists(a.path) || s.exists(posixpath.Join(a.host, a.path)), nil
	case strings.HasPrefix(url, "/"):
		return s.exists(url), nil
	}
	return s.has(url, env)
}

// answers asks a web server whether it has something, through the http module, or else by fetching it.
func (s *sources) answers(url string) (bool, error) {
	if _, err := s.Registry().Lookup("http.query", s.Env); err != nil {
		path, err := s.cacheFile(url, s.env, nil, nil, nil)
		return err == nil && path != "", s.ctx.Err()
	}
	v, err := s.ExecKw(s.ctx, "http.query", []any{url}, map[string]any{"method": "HEAD", "decode_body": false})
	if err != nil {
		return false, err
	}
	res, ok := v.(map[string]any)
	_, bad := res["error"]
	return ok && !bad, nil
}

// saltPath takes a salt:// address apart; any other is its own path.
func saltPath(url string) (path, env string) {
	rest, ok := strings.CutPrefix(url, "salt://")
	if !ok {
		return url, ""
	}
	if before, _, ok := strings.Cut(rest, "?env="); ok {
		return before, ""
	}
	path, env, _ = strings.Cut(rest, "?saltenv=")
	return path, env
}

// engine reports whether Salt has a template engine of that name.
func isEngine(v any) bool {
	switch v {
	case "jinja", "mako", "py", "wempy", "genshi", "cheetah":
		return true
	}
	return false
}

// mergedContext is defaults with context over them, as templates see it: at their top level.
func mergedContext(vars map[string]any, defaults, context any) {
	for _, layer := range [...]any{defaults, context} {
		switch m := layer.(type) {
		case *pyobj.Dict:
			for k, v := range m.All() {
				vars[pytext.Str(pyobj.Plain(k))] = v
			}
		case map[string]any:
			for k, v := range m {
				vars[k] = v
			}
		}
	}
}

// expand sends a text through a template engine.
func (h *host) expand(engine, content, path string, vars map[string]any) (string, error) {
	env, _ := vars["saltenv"].(string)
	v, err := h.Template(h.ctx, modules.Template{Text: content, Pipe: engine, Engine: true, Path: path, SaltEnv: env, Vars: vars})
	out, _ := v.(string)
	return out, err
}

func applyTemplate(h *host) (any, error) {
	engine := h.plain("template")
	unsupported := map[string]any{"result": false, "comment": fmt.Sprintf("Specified template format %s is not supported", pytext.Str(engine))}
	if !isEngine(engine) {
		return unsupported, nil
	}
	content, ok := h.plain("contents").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "contents must be text, not " + modules.TypeName(h.plain("contents"))}
	}
	vars := map[string]any{"saltenv": h.plain("saltenv")}
	mergedContext(vars, h.Value("defaults"), h.Value("context"))
	out, err := h.expand(engine.(string), content, "", vars)
	switch {
	case errors.Is(err, modules.ErrEngine):
		return unsupported, nil
	case h.ctx.Err() != nil:
		return nil, context.Cause(h.ctx)
	case err != nil:
		return nil, renderError(err)
	}
	return out, nil
}

// renderError converts a template's error to Salt's SaltRenderError.
func renderError(err error) error {
	var render *modules.RenderError
	if errors.As(err, &render) {
		return &modules.PythonError{Type: "SaltRenderError", Msg: err.Error()}
	}
	return err
}

// wanted is a file to manage: where its content comes from and what it is expanded with.
type wanted struct {
	name                           string
	template                       any
	source, hash, hashName         any
	user, group, mode, attrs       any
	saltenv                        any
	context, defaults              any
	skipVerify, verifySSL, useEtag any
	sign                           signing
	kwargs                         map[string]any
}

// managedArgs returns the arguments that all functions about managed files share.
func (h *host) managedArgs() (wanted, error) {
	w := wanted{
		template: h.plain("template"), source: h.plain("source"), hash: h.plain("source_hash"), hashName: h.plain("source_hash_name"),
		user: h.plain("user"), group: h.plain("group"), mode: h.plain("mode"), attrs: h.plain("attrs"), saltenv: h.plain("saltenv"),
		context: h.Value("context"), defaults: h.Value("defaults"), skipVerify: h.plain("skip_verify"), verifySSL: h.plain("verify_ssl"),
		useEtag: h.plain("use_etag"), kwargs: h.Keywords,
	}
	var ok bool
	if w.name, ok = h.plain("name").(string); !ok {
		return w, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(h.plain("name"))}
	}
	return w, nil
}

func getManaged(h *host) (any, error) {
	w, err := h.managedArgs()
	if err != nil {
		return nil, err
	}
	w.sign = signing{
		h.plain("source_hash_sig"), h.plain("signed_by_any"), h.plain("signed_by_all"), h.plain("keyring"), h.plain("gnupghome"),
		w.saltenv, w.verifySSL,
	}
	sfn, sum, comment, err := h.getManaged(w)
	if err != nil {
		return nil, modules.OSError(err)
	}
	return pyobj.Tuple{sfn, sum, comment}, nil
}

// getManaged implements file.get_managed. It returns the file to install and its hash, or a comment on what went
// wrong.
func (h *host) getManaged(w wanted) (sfn any, sum map[string]any, comment string, err error) {
	none := map[string]any{}
	if !pytext.Truth(w.source) {
		return "", none, "", nil
	}
	source, ok := w.source.(string)
	if !ok {
		return nil, nil, "", modules.NoAttribute(w.source, "decode")
	}
	path, sum, comment, err := h.sourceOf(w, source)
	if comment != "" || err != nil {
		return "", none, comment, err
	}
	scheme := parseURL(source).scheme
	if !pytext.Truth(w.template) && !isRemote(scheme) {
		return path, sum, "", nil
	}
	path, sum, err = h.fetch(w, source, path, sum)
	switch {
	case h.ctx.Err() != nil:
		return nil, nil, "", context.Cause(h.ctx)
	case err != nil:
		return "", none, fmt.Sprintf("Failed to cache %s: %s", modules.RedactAuth(source), message(err)), nil
	case path == "":
		return false, none, fmt.Sprintf("Source file '%s' not found", modules.RedactAuth(source)), nil
	case !h.exists(path):
		return path, none, fmt.Sprintf("Source file '%s' not found", modules.RedactAuth(source)), nil
	case path == w.name:
		return nil, nil, "", modules.Usagef("Source file cannot be the same as destination")
	case !pytext.Truth(w.template):
		return path, sum, "", nil
	}
	return h.expanded(w, path)
}

// sourceOf finds the hash that a source should have and, for a local one, its path.
func (h *host) sourceOf(w wanted, source string) (path string, sum map[string]any, comment string, err error) {
	a := parseURL(source)
	scheme := a.scheme
	if !isProto(scheme) {
		scheme = ""
	}
	local := strings.TrimRight(posixpath.Join(a.host, a.path), "/")
	if scheme == "" {
		local = source
	}
	if scheme == "" || scheme == "file" {
		if path = local; !h.exists(path) {
			return "", nil, fmt.Sprintf("Local file source %s does not exist", path), nil
		}
	}
	switch {
	case scheme == "salt":
		v, err := h.Exec(h.ctx, "cp.hash_file", source, w.saltenv)
		if err != nil {
			return "", nil, "", err
		}
		if sum, _ = v.(map[string]any); len(sum) == 0 {
			return "", nil, fmt.Sprintf("Source file %s not found in saltenv '%s'", source, pytext.Str(w.saltenv)), nil
		}
		return path, sum, "", nil
	case !pytext.Truth(w.hash) && path != "":
		digits, err := h.hash(path, "sha256")
		return path, map[string]any{"hsum": digits, "hash_type": "sha256"}, "", err
	case pytext.Truth(w.skipVerify):
	case pytext.Truth(w.hash):
		sum, err = h.sourceSum(w.name, source, w.hash, w.hashName, w.sign)
		if isExec(err) {
			return "", nil, "Unable to manage file: " + err.Error(), nil
		}
		return path, sum, "", err
	case !pytext.Truth(w.useEtag):
		return "", nil, fmt.Sprintf("Unable to verify upstream hash of source file %s, "+
			"please set source_hash or set skip_verify to True", modules.RedactAuth(source)), nil
	}
	return path, map[string]any{}, "", nil
}

// fetch brings the source into the cache unless the cache has it.
func (h *host) fetch(w wanted, source, path string, sum map[string]any) (string, map[string]any, error) {
	v, err := h.Exec(h.ctx, "cp.is_cached", source, w.saltenv)
	if err != nil {
		return "", nil, err
	}
	again := false
	if cached := str(v); cached != "" && (pytext.Truth(w.hash) || pytext.Truth(w.skipVerify) || pytext.Truth(w.useEtag)) {
		kind := "sha256"
		if s, ok := sum["hash_type"].(string); ok {
			kind = s
		}
		have, err := h.hash(cached, kind)
		if err != nil {
			return "", nil, err
		}
		switch {
		case pytext.Truth(w.skipVerify):
			path, sum = cached, map[string]any{"hsum": have, "hash_type": kind}
		case pytext.Truth(w.useEtag) || any(have) != sum["hsum"]:
			again = true
		default:
			path = cached
		}
	}
	if path == "" || again {
		path, err = h.cacheFile(source, w.saltenv, sum["hsum"], w.verifySSL, w.useEtag)
	}
	return path, sum, err
}

// expanded renders a file by a template engine into a temporary file.
func (h *host) expanded(w wanted, path string) (any, map[string]any, string, error) {
	unsupported := fmt.Sprintf("Specified template format %s is not supported", pytext.Str(w.template))
	if !isEngine(w.template) {
		return path, map[string]any{}, unsupported, nil
	}
	content, err := h.readText(path)
	if err != nil && h.isBinary(path) { // not a template: it is taken as it is
		digits, err := h.hash(path, "sha256")
		return path, map[string]any{"hash_type": "sha256", "hsum": digits}, "", err
	}
	if err != nil {
		return nil, nil, "", err
	}
	vars := map[string]any{}
	for k, v := range w.kwargs {
		vars[k] = v
	}
	for k, v := range map[string]any{
		"name": w.name, "source": w.source, "user": w.user, "group": w.group, "mode": w.mode, "attrs": w.attrs, "saltenv": w.saltenv,
	} {
		vars[k] = v
	}
	mergedContext(vars, w.defaults, w.context)
	out, err := h.expand(w.template.(string), content, h.Path(path), vars)
	switch {
	case errors.Is(err, modules.ErrEngine):
		return path, map[string]any{}, unsupported, nil
	case h.ctx.Err() != nil:
		return nil, nil, "", context.Cause(h.ctx)
	case err != nil:
		return nil, nil, "", renderError(err)
	}
	sfn, err := h.temp([]byte(out))
	if err != nil {
		return nil, nil, "", err
	}
	digits, err := h.hash(sfn, "sha256")
	return sfn, map[string]any{"hash_type": "sha256", "hsum": digits}, "", err
}
