package murano

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// runner runs the scripts of a plan in a directory that is removed afterwards.
type runner struct {
	c      *modules.Call
	plan   *plan
	dir    string
	root   *os.Root // for dir: file names cannot refer to paths outside of it
	loaded map[string]bool
}

// execute runs the plan's calls. It returns a result for each call: the script, exitCode, stdout and stderr. The
// first failure ends it.
func execute(ctx context.Context, c *modules.Call, s *settings, p *plan) ([]any, error) {
	if err := os.MkdirAll(s.storage, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.storage, "plan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := &runner{c: c, plan: p, dir: dir, root: root, loaded: map[string]bool{}}
	calls := p.Calls
	if calls == nil {
		for _, name := range p.names {
			calls = append(calls, call{Script: name})
		}
	}
	results := []any{}
	for i, one := range calls {
		got, err := r.call(ctx, one)
		if err != nil {
			return nil, err
		}
		got["script"] = one.Script
		results = append(results, got)
		c.Progress(fmt.Sprintf("%d of %d: %s", i+1, len(calls), one.Script))
	}
	return results, nil
}

// call runs a script.
func (r *runner) call(ctx context.Context, one call) (map[string]any, error) {
	s := r.plan.Scripts[one.Script]
	work := path.Join("scripts", one.Script)
	if !r.loaded[one.Script] {
		if err := r.load(ctx, s, work); err != nil {
			return nil, err
		}
		r.loaded[one.Script] = true
	}
	switch s.Type {
	case application:
		return r.application(ctx, one, s, work)
	case puppet:
		return r.puppet(ctx, one, s, work)
	}
	return r.chef(ctx, one, s, work)
}

func (r *runner) at(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// load writes the files of a script to its directory.
func (r *runner) load(ctx context.Context, s script, work string) error {
	if err := r.root.MkdirAll(work, 0o700); err != nil {
		return err
	}
	ids := s.Files
	if s.Type == application {
		ids = append(ids[:len(ids):len(ids)], fileName(s.EntryPoint))
	}
	done := map[fileName]bool{}
	for _, id := range ids {
		if done[id] {
			continue
		}
		done[id] = true
		if err := r.put(ctx, string(id), r.plan.Files[string(id)], work); err != nil {
			return err
		}
	}
	return nil
}

// put writes or downloads a file.
func (r *runner) put(ctx context.Context, id string, f file, work string) error {
	if !filepath.IsLocal(filepath.FromSlash(f.Name)) || path.Clean(f.Name) == "." {
		return wrong("the name %q of the file %s leads out of the directory of its script", f.Name, id)
	}
	name := path.Join(work, f.Name)
	if err := r.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if f.Type != nil {
		return r.download(ctx, id, *f.URL, name)
	}
	content := []byte(*f.Body)
	if *f.BodyType == "Base64" {
		var err error
		// As in Python, line ends are allowed.
		if content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(*f.Body), "")); err != nil {
			return wrong("the file %s is not Base64: %s", id, err)
		}
	}
	return r.root.WriteFile(name, content, 0o600)
}

// maxDownload limits a downloaded file, and downloadTime the time for it.
const maxDownload, downloadTime = 4 << 30, 30 * time.Minute

// download fetches a git or Subversion repository, or a file, into the directory name, as the agent does.
func (r *runner) download(ctx context.Context, id, address, name string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return wrong("Provided URL is not valid %s", withoutPassword(address))
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	failed := func(cause any) error {
		text := fmt.Sprint(cause)
		if u.User != nil {
			text = strings.ReplaceAll(text, u.User.String()+"@", "")
		}
		return &planError{code: 1, text: fmt.Sprintf("Error to download the file %s from %s: %s", id, withoutPassword(address), text)}
	}
	program := func(args ...string) error {
		res, err := r.c.Cmd(ctx, modules.Command{Args: args, Dir: r.dir, Env: []string{"GIT_TERMINAL_PROMPT=0"}, Timeout: downloadTime, Grace: killAfter})
		if err != nil {
			return failed(err)
		}
		if res.ExitCode != 0 {
			return failed(strings.TrimSpace(string(res.Stderr)))
		}
		return nil
	}
	switch {
	case strings.HasPrefix(address, "git://") || strings.HasPrefix(address, "git+http://") || strings.HasPrefix(address, "git+https://") ||
		strings.HasSuffix(address, ".git"):
		return program("git", "clone", "--quiet", "--", strings.TrimPrefix(address, "git+"), r.at(name))
	case u.Scheme == "svn" || (u.Scheme == "http" || u.Scheme == "https") && strings.Contains(u.Path, "/svn/"):
		return program("svn", "checkout", "--quiet", "--non-interactive", "--", address, r.at(name))
	case u.Scheme != "http" && u.Scheme != "https":
		return wrong("Provided URL is not valid %s", withoutPassword(address))
	}
	if err := r.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return failed(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return failed(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return failed(resp.Status)
	}
	to, err := r.root.Create(path.Join(name, path.Base(path.Join("/", u.Path))))
	if err != nil {
		return failed(err)
	}
	n, err := io.Copy(to, io.LimitReader(resp.Body, maxDownload+1))
	if err == nil && n > maxDownload {
		err = fmt.Errorf("it has more than %d bytes", int64(maxDownload))
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return failed(err)
	}
	return nil
}

// withoutPassword returns a URL in a form that results may contain. Of an invalid URL it returns the part after the
// last @.
func withoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil && u.Opaque == "" {
		return u.Redacted()
	}
	return address[strings.LastIndexByte(address, '@')+1:]
}

// application runs a program of the plan with a command line, which the shell parses.
func (r *runner) application(ctx context.Context, one call, s script, work string) (map[string]any, error) {
	name := path.Join(work, r.plan.Files[s.EntryPoint].Name)
	if err := r.root.Chmod(name, 0o500); err != nil {
		return nil, err
	}
	// The agent runs "./name" in the program's directory without quoting the name, so that the shell interprets quotes
	// and variables in it.
	line := quote("./"+path.Base(name)) + " " + one.CommandLine
	return r.program(ctx, s, one.Script, modules.Command{Shell: "/bin/sh", Script: line, Dir: r.at(path.Dir(name)), Stdin: strings.NewReader(one.Input)})
}

// puppet applies a class of the plan's modules. Attributes are its parameters; Murano's agent writes them where
// Puppet does not look.
func (r *runner) puppet(ctx context.Context, one call, s script, work string) (map[string]any, error) {
	module, class := split(s.EntryPoint)
	name := module
	if class != "" {
		name += "::" + class
	}
	data := map[string]any{}
	for k, v := range one.Attributes {
		data[module+"::"+k] = v
	}
	// JSON is valid YAML
	values, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	hiera := `{"version": 5, "hierarchy": [{"name": "plan", "path": "default.yaml"}], "defaults": {"datadir": ".", "data_hash": "yaml_data"}}`
	err = errors.Join(
		r.root.WriteFile(path.Join(work, "manifest.pp"), []byte("node 'default' { class { "+name+":}}"), 0o600),
		r.keep(path.Join(work, "hiera.yaml"), hiera),
		r.root.WriteFile(path.Join(work, "default.yaml"), values, 0o600))
	if err != nil {
		return nil, err
	}
	dir := r.at(work)
	return r.program(ctx, s, s.EntryPoint, modules.Command{Dir: dir,
		Args: []string{"puppet", "apply", "--hiera_config=" + filepath.Join(dir, "hiera.yaml"), "--modulepath", dir, "manifest.pp"}})
}

// chef runs a recipe of the plan's cookbooks. Attributes are those of the cookbook.
func (r *runner) chef(ctx context.Context, one call, s script, work string) (map[string]any, error) {
	book, recipe := split(s.EntryPoint)
	cookbooks := r.at(work)
	if s.Options["useBerkshelf"] == true {
		file := book + "/Berksfile"
		if v := s.Options["berksfilePath"]; v != nil {
			file = pytext.Str(v)
		}
		if info, err := r.root.Stat(path.Join(work, file)); err != nil || !info.Mode().IsRegular() {
			return nil, &planError{code: 100, text: fmt.Sprintf("Berskfile %s not found", r.at(path.Join(work, file)))}
		}
		cookbooks = filepath.Join(cookbooks, "berks-cookbooks")
		if _, err := r.program(ctx, s, "Berks", modules.Command{Dir: r.at(work),
			Args: []string{"berks", "vendor", "--berksfile=" + r.at(path.Join(work, file)), cookbooks}}); err != nil {
			return nil, err
		}
	}
	node := map[string]any{"run_list": []string{"recipe[" + book + "::" + recipe + "]"}}
	if one.Attributes != nil {
		node[book] = one.Attributes
	}
	attributes, err := json.Marshal(node)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		r.keep(path.Join(work, "solo.rb"), "cookbook_path "+ruby(cookbooks)),
		r.root.WriteFile(path.Join(work, "node.json"), attributes, 0o600))
	if err != nil {
		return nil, err
	}
	return r.program(ctx, s, s.EntryPoint, modules.Command{Dir: r.at(work), Args: []string{"chef-solo", "-j", "node.json", "-c", filepath.Join(r.at(work), "solo.rb")}})
}

// keep writes a file if the plan does not contain it.
func (r *runner) keep(name, text string) error {
	if _, err := r.root.Lstat(name); err == nil {
		return nil
	}
	return r.root.WriteFile(name, []byte(text), 0o600)
}

// program runs a program and returns the result in the agent's form. name is used in error texts.
func (r *runner) program(ctx context.Context, s script, name string, cmd modules.Command) (map[string]any, error) {
	cmd.Grace = killAfter
	res, err := r.c.Cmd(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if s.Type != application {
		// As in the agent, errors that these programs print to standard output are added to standard error.
		for line := range bytes.Lines(res.Stdout) {
			if bytes.Contains(line, []byte("ERROR")) {
				res.Stderr = append(append(res.Stderr, bytes.TrimRight(line, "\r\n")...), '\n')
			}
		}
	}
	out := map[string]any{"exitCode": int64(res.ExitCode), "stdout": output(res.Stdout, s.is("captureStdout")), "stderr": output(res.Stderr, s.is("captureStderr"))}
	if res.ExitCode != 0 && s.is("verifyExitcode") {
		return nil, &planError{code: 100, text: "Script " + name + " returned error code", info: out}
	}
	return out, nil
}

// output returns the text of a stream without surrounding white space, or nil if the stream is empty or not captured.
func output(b []byte, wanted bool) any {
	text := strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
	if !wanted || len(b) == 0 {
		return nil
	}
	return text
}

// split splits "module::class" at the last "::".
func split(name string) (string, string) {
	i := strings.LastIndex(name, "::")
	return name[:i], name[i+2:]
}

// quote quotes a text as one word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ruby returns a text as a Ruby literal.
func ruby(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
