package gitfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/shlex"
)

const (
	// readTimeout limits reading one object out of a copy.
	readTimeout = time.Minute
	// maxTrees limits the trees in memory per repository, and maxOutput the output of git.
	maxTrees, maxOutput = 8, 256 << 20
)

// repo is one remote and its bare copy.
type repo struct {
	o      Remote
	global Options
	dir    string

	fetching sync.Mutex // held while fetchRefs runs

	mu    sync.Mutex // guards the fields below
	stamp time.Time  // of the state that refs belong to
	refs  map[string]string
	trees map[string]*tree
	order []string // keys of trees, the oldest first
}

func newRepo(o Options, r Remote) (*repo, error) {
	if err := checkRemote(&r); err != nil {
		return nil, err
	}
	name := r.Name
	if name == "" {
		sum := sha256.Sum256([]byte(r.URL))
		name = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	p := &repo{o: r, global: o, dir: filepath.Join(o.CacheDir, "repos", name), trees: map[string]*tree{}}
	return p, p.initCopy()
}

// checkRemote returns what is wrong with a remote, and fills in defaults.
func checkRemote(r *Remote) error {
	r.URL = strings.TrimSpace(r.URL)
	// guard: CVE-2025-22237 TestCVE_2025_22237_NoProgramsInAddresses
	if err := checkURL(r.URL); err != nil {
		return err
	}
	if n := r.Name; n != "" && (n != filepath.Base(n) || !filepath.IsLocal(n) || n == "." || strings.HasPrefix(n, "-") || len(n) > 200) {
		return fmt.Errorf("%q cannot be the name of a directory", n)
	}
	if r.RefTypes == nil {
		r.RefTypes = []string{"branch", "tag", "sha"}
	}
	for _, t := range r.RefTypes {
		if t != "branch" && t != "tag" && t != "sha" {
			return fmt.Errorf("ref_types: %q is not one of branch, tag, sha", t)
		}
	}
	if r.Refspecs == nil {
		r.Refspecs = []string{"+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"}
	}
	for _, s := range r.Refspecs {
		from, to, ok := strings.Cut(strings.TrimPrefix(s, "+"), ":")
		if !ok || !strings.HasPrefix(from, "refs/") || !strings.HasPrefix(to, "refs/") {
			return fmt.Errorf("refspecs: %q does not go from refs/… to refs/…", s)
		}
	}
	r.Root, r.Mountpoint = strings.Trim(r.Root, "/"), mountpoint(r.Mountpoint)
	if (r.User != "" || r.Password != "") && strings.HasPrefix(r.URL, "http://") && !r.Insecure {
		return errors.New("a password needs https; insecure_auth allows http")
	}
	return nil
}

// checkURL allows the transports that git itself contains. Others would run programs (ext::).
func checkURL(s string) error {
	if s == "" || strings.HasPrefix(s, "-") || strings.ContainsAny(s, "\x00\n") {
		return errors.New("it is not a URL")
	}
	if u, err := url.Parse(s); err == nil && u.Scheme != "" {
		if slices.Contains([]string{"file", "git", "http", "https", "ssh"}, u.Scheme) && !strings.Contains(s, "::") {
			return nil
		}
		return fmt.Errorf("transport %q is not supported", u.Scheme)
	}
	if filepath.IsAbs(s) {
		return nil
	}
	if at, path, ok := strings.Cut(s, ":"); ok && strings.Contains(at, "@") && !strings.HasPrefix(path, ":") && !strings.Contains(at, "/") {
		return nil // user@host:path
	}
	return errors.New("it is not a URL")
}

// redacted returns a URL for logs, without its password.
func redacted(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return s
}

func mountpoint(s string) string { return strings.Trim(strings.TrimPrefix(s, "salt://"), "/") }

// runGit runs git on the copy. No configuration of the copy or the host makes it run other programs.
func (r *repo) runGit(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.global.Program, append([]string{"--git-dir", r.dir}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0")
	config := [][2]string{{"core.hooksPath", os.DevNull}, {"gc.auto", "0"}, {"fetch.fsckObjects", "false"}, {"core.askPass", ""}}
	if r.o.NoVerify {
		config = append(config, [2]string{"http.sslVerify", "false"})
	}
	if r.o.Proxy != "" {
		config = append(config, [2]string{"http.proxy", r.o.Proxy})
	}
	if r.o.User != "" || r.o.Password != "" { // in the environment, which other users cannot read, unlike arguments
		auth := base64.StdEncoding.EncodeToString([]byte(r.o.User + ":" + r.o.Password))
		config = append(config, [2]string{"http.extraHeader", "Authorization: Basic " + auth})
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(config)))
	for i, c := range config {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, c[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, c[1]))
	}
	if r.o.PrivateKey != "" {
		cmd.Env = append(cmd.Env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes -o IdentitiesOnly=yes -i "+shlex.Quote(r.o.PrivateKey))
	}
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(errs.String())
		if r.o.Password != "" {
			text = strings.ReplaceAll(text, r.o.Password, "…")
		}
		if text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return nil, err
	}
	if out.over {
		return nil, fmt.Errorf("git printed more than %d bytes", maxOutput)
	}
	return out.Bytes(), nil
}

// limited keeps what fits and drops the rest.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		l.over = true
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

// initCopy creates the copy if it is missing.
func (r *repo) initCopy() error {
	if _, err := os.Stat(filepath.Join(r.dir, "HEAD")); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	_, err := r.runGit(ctx, "init", "--quiet", "--bare", "--template=", r.dir)
	return err
}

// fetchRefs updates the copy and reports whether it changed.
func (r *repo) fetchRefs(ctx context.Context) (bool, error) {
	r.fetching.Lock()
	defer r.fetching.Unlock()
	if err := r.takeLock(); err != nil {
		return false, err
	}
	defer r.releaseLock()
	if err := r.initCopy(); err != nil {
		return false, err
	}
	before, err := r.readRefs(ctx)
	if err != nil {
		return false, err
	}
	limit, cancel := context.WithTimeout(ctx, r.global.Timeout)
	defer cancel()
	args := append([]string{"fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", r.o.URL}, r.o.Refspecs...)
	if _, err := r.runGit(limit, args...); err != nil {
		return false, err
	}
	after, err := r.readRefs(ctx)
	if err != nil || sameRefs(before, after) {
		return false, err
	}
	r.dropBlobs()
	return true, os.WriteFile(filepath.Join(r.dir, "changed"), nil, 0o600)
}

func sameRefs(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// readRefs returns the copy's branches and tags with their commits.
func (r *repo) readRefs(ctx context.Context) (map[string]string, error) {
	out, err := r.runGit(ctx, "for-each-ref", "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(refname)")
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		if len(f) != 5 {
			continue
		}
		switch {
		case f[0] == "commit":
			refs[f[4]] = f[1]
		case f[2] == "commit":
			refs[f[4]] = f[3]
		}
	}
	return refs, nil
}

// knownRefs returns the refs. They are read again after a fetch of this process or another one.
func (r *repo) knownRefs() map[string]string {
	var stamp time.Time
	if info, err := os.Stat(filepath.Join(r.dir, "changed")); err == nil {
		stamp = info.ModTime()
	}
	r.mu.Lock()
	refs := r.refs
	fresh := refs != nil && stamp.Equal(r.stamp)
	r.mu.Unlock()
	if fresh {
		return refs
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	now, err := r.readRefs(ctx)
	if err != nil {
		r.global.Log.Error("Cannot read repository", "remote", redacted(r.o.URL), "err", err)
		return refs
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refs, r.stamp = now, stamp
	return now
}

// envSetting returns what the configuration says of an environment: the remote's value, else the one for all
// remotes.
func (r *repo) envSetting(name string, pick func(Env) *string) *string {
	if v := pick(r.o.Envs[name]); v != nil {
		return v
	}
	return pick(r.global.Envs[name])
}

func envRef(e Env) *string { return e.Ref }

func (r *repo) root(env string) string {
	if v := r.envSetting(env, func(e Env) *string { return e.Root }); v != nil {
		return strings.Trim(*v, "/")
	}
	return r.o.Root
}

func (r *repo) mountpoint(env string) string {
	if v := r.envSetting(env, func(e Env) *string { return e.Mountpoint }); v != nil {
		return mountpoint(*v)
	}
	return r.o.Mountpoint
}

// baseRef returns the branch, tag or commit of the environment base.
func (r *repo) baseRef() string {
	if v := r.o.Envs["base"].Ref; v != nil {
		return *v
	}
	return r.o.Base
}

// refOf returns the branch, tag or commit of an environment, or "" if it is missing.
func (r *repo) refOf(env string) string {
	if r.o.All != "" {
		return r.o.All
	}
	if env == "base" {
		return r.baseRef()
	}
	if v := r.envSetting(env, envRef); v != nil {
		return *v
	}
	if r.o.NoMapping {
		return ""
	}
	return env
}

// mappedEnvs returns the environments that the configuration makes of a ref. One that the remote itself maps is not
// mapped again.
func (r *repo) mappedEnvs() map[string][]string {
	out := map[string][]string{}
	for env, e := range r.o.Envs {
		if e.Ref != nil {
			out[*e.Ref] = append(out[*e.Ref], env)
		}
	}
	for env, e := range r.global.Envs {
		if own := r.o.Envs[env].Ref; e.Ref != nil && own == nil {
			out[*e.Ref] = append(out[*e.Ref], env)
		}
	}
	return out
}

// listEnvs returns the environments.
func (r *repo) listEnvs() []string {
	var out []string
	byRef := r.mappedEnvs()
	if isHex(r.baseRef()) {
		out = append(out, "base")
	}
	for ref := range r.knownRefs() {
		name, branch := strings.CutPrefix(ref, "refs/remotes/")
		if branch {
			if _, rest, ok := strings.Cut(name, "/"); ok && rest != "" {
				name = rest
			}
		} else {
			var tag bool
			if name, tag = strings.CutPrefix(ref, "refs/tags/"); !tag || !slices.Contains(r.o.RefTypes, "tag") {
				continue
			}
		}
		if branch && !slices.Contains(r.o.RefTypes, "branch") {
			continue
		}
		switch envs, ok := byRef[name]; {
		case ok:
			out = append(out, envs...)
		case name == r.baseRef():
			out = append(out, "base")
		case !r.o.NoMapping:
			out = append(out, name)
		}
	}
	for _, envs := range byRef {
		out = append(out, envs...)
	}
	out = slices.DeleteFunc(out, func(env string) bool { return !r.isExposed(env) })
	slices.Sort(out)
	return slices.Compact(out)
}

// isExposed applies saltenv_whitelist and saltenv_blacklist.
func (r *repo) isExposed(env string) bool {
	match := func(list []string) bool {
		return slices.ContainsFunc(list, func(expr string) bool {
			if fnmatch.Match(expr, env) {
				return true
			}
			re, err := pyre.Compile(`\A`+expr+`\Z`, 0)
			if err != nil {
				return false
			}
			at, err := re.Match(env)
			return err == nil && at != nil
		})
	}
	return !match(r.o.Deny) && (len(r.o.Allow) == 0 || match(r.o.Allow))
}

// servesEnv reports whether an environment may exist although it is not listed.
func (r *repo) servesEnv(env string) bool { return isHex(env) || r.o.Fallback != "" }

// isHex reports what Python's int(x, 16) accepts, as far as ids of commits go.
func isHex(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// repoPath returns the path in the repository of a path in an environment.
func (r *repo) repoPath(env, name string) (string, bool) {
	if mount := r.mountpoint(env); mount != "" {
		var below bool
		if name, below = strings.CutPrefix(name, mount+"/"); !below {
			return "", false
		}
	}
	if root := r.root(env); root != "" {
		name = root + "/" + name
	}
	return name, true
}

// findCommit returns the commit of a name.
func (r *repo) findCommit(ctx context.Context, name string) (string, error) {
	refs := r.knownRefs()
	for _, kind := range r.o.RefTypes {
		switch kind {
		case "branch":
			if c, ok := refs["refs/remotes/origin/"+name]; ok {
				return c, nil
			}
		case "tag":
			if c, ok := refs["refs/tags/"+name]; ok {
				return c, nil
			}
		case "sha":
			if len(name) < 4 || !isHex(name) {
				continue
			}
			out, err := r.runGit(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				continue // there is none
			}
			return strings.TrimSpace(string(out)), err
		}
	}
	return "", nil
}

// treeOf returns the tree of an environment, nil if the repository does not have it.
func (r *repo) treeOf(ctx context.Context, env string) (*tree, error) {
	ref := r.refOf(env)
	if !r.isExposed(env) || ref == "" {
		return nil, nil
	}
	commit, err := r.findCommit(ctx, ref)
	if err == nil && commit == "" && r.o.Fallback != "" {
		commit, err = r.findCommit(ctx, r.o.Fallback)
	}
	if err != nil || commit == "" {
		return nil, err
	}
	r.mu.Lock()
	t := r.trees[commit]
	r.mu.Unlock()
	if t != nil {
		return t, nil
	}
	if t, err = r.readTree(ctx, commit); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trees[commit] == nil {
		if len(r.order) >= maxTrees {
			delete(r.trees, r.order[0])
			r.order = r.order[1:]
		}
		r.trees[commit], r.order = t, append(r.order, commit)
	}
	return t, nil
}

// lockFile is the file of a lock, with the process id of its owner.
func (r *repo) lockFile() string { return r.dir + ".update.lk" }

// takeLock takes the lock for a fetch. It takes over the lock of a dead process.
func (r *repo) takeLock() error {
	_, err := r.lock()
	if err == nil {
		return nil
	}
	b, rerr := os.ReadFile(r.lockFile())
	if pid, perr := strconv.Atoi(strings.TrimSpace(string(b))); rerr == nil && perr == nil && pid > 0 && !isRunning(pid) {
		if _, err := r.unlock(); err != nil {
			return err
		}
		_, err = r.lock()
	}
	return err
}

func (r *repo) releaseLock() { _, _ = r.unlock() }

func (r *repo) lock() (string, error) {
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(r.lockFile(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("the update lock of %s is held: %s exists", redacted(r.o.URL), r.lockFile())
	}
	if err != nil {
		return "", fmt.Errorf("cannot lock %s: %w", redacted(r.o.URL), err)
	}
	_, err = f.WriteString(strconv.Itoa(os.Getpid()))
	return "Set update lock for gitfs remote '" + redacted(r.o.URL) + "'", errors.Join(err, f.Close())
}

func (r *repo) unlock() (string, error) {
	err := os.Remove(r.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot unlock %s: %w", redacted(r.o.URL), err)
	}
	return "Removed update lock for gitfs remote '" + redacted(r.o.URL) + "'", nil
}

func (r *repo) clear() error {
	r.fetching.Lock()
	defer r.fetching.Unlock()
	r.mu.Lock()
	r.refs, r.trees, r.order = nil, map[string]*tree{}, nil
	r.mu.Unlock()
	return errors.Join(os.RemoveAll(r.dir), r.initCopy())
}

// followLink returns where a link of a path leads, inside the repository.
func followLink(name, to string) (string, bool) {
	if strings.HasPrefix(to, "/") {
		return "", false
	}
	name = posixpath.Norm(posixpath.Join(posixpath.Dir(name), to))
	return name, name != "." && name != ".." && !strings.HasPrefix(name, "../")
}
