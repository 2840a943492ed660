package dockermod

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// containerPath is the PATH of a command whose environment is its own.
const containerPath = "PATH=/bin:/usr/bin:/sbin:/usr/sbin:/opt/bin:/usr/local/bin:/usr/local/sbin"

// logs returns the lines of a container's output that Docker has kept.
func (d *client) logs(name any) (any, error) {
	query := dict{"stdout": int64(1), "stderr": int64(1), "timestamps": int64(0), "follow": int64(0), "tail": "all"}
	for k, v := range d.keywords() {
		switch k {
		case "stream":
			return nil, modules.Usagef("The 'stream' argument is not supported")
		case "stdout", "stderr", "timestamps", "follow":
			query[k] = int64(0)
			if pytext.Truth(v) {
				query[k] = int64(1)
			}
		case "tail":
			if n, ok := v.(int64); ok && n >= 0 {
				query[k] = n
			}
		case "since", "until":
			if n, err := modules.ToInt(v); err == nil && k == "since" {
				v = n
			}
			n, isInt := v.(int64)
			f, isFloat := v.(float64)
			if v != nil && !(isInt && n > 0) && !(isFloat && f > 0) {
				return nil, modules.Errorf("%s value should be datetime or positive int/float, not <class '%s'>", k, modules.TypeName(v))
			}
			query[k] = v
		default:
			return nil, unable("logs", "ContainerApiMixin.logs() got an unexpected keyword argument '"+k+"'")
		}
	}
	return d.readLogs(name, query)
}

func (d *client) readLogs(name any, query dict) (string, error) {
	info, err := d.inspectContainer(name)
	if err != nil {
		return "", err
	}
	resp, cancel, err := d.open("logs", request{id: name, query: query, patience: forever})
	if err != nil {
		return "", err
	}
	defer cancel()
	defer resp.Body.Close()
	var out output
	if pytext.Truth(get(info, "Config")["Tty"]) {
		_, err = io.Copy(&out, resp.Body)
	} else {
		err = demultiplex(resp.Body, &out, &out)
	}
	if err != nil {
		if d.ctx.Err() != nil {
			return "", d.ctx.Err()
		}
		return "", unable("logs", fmt.Sprintf("cannot read the log from Docker at %s: %s", d.where, err))
	}
	return d.text(&out), nil
}

// text returns the kept output of a stream as text.
func (d *client) text(o *output) string {
	if o.dropped {
		d.Logger().Warn("Output beyond the limit was dropped", "fun", d.Fun, "limit", maxOutput)
	}
	return strings.ToValidUTF8(string(o.text), "\ufffd")
}

// command is a command in a container.
type command struct {
	words          []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// exec runs a command in a container. What the daemon refuses goes to standard error, as the program docker writes it.
func (d *client) exec(name any, cmd command) (code, pid int64, err error) {
	words := make([]any, len(cmd.words))
	for i, w := range cmd.words {
		words[i] = w
	}
	made, err := d.dict("exec_create", request{id: name, body: dict{
		"AttachStdin": cmd.stdin != nil, "AttachStdout": true, "AttachStderr": true, "Tty": false, "Cmd": words,
	}})
	if status, said := refusal(err); status != "" {
		_, err = io.WriteString(cmd.stderr, "Error response from daemon: "+said+"\n")
		return 1, 0, err
	}
	if err != nil {
		return 0, 0, err
	}
	resp, cancel, err := d.open("exec_start", request{id: made["Id"], body: dict{"Detach": false, "Tty": false}, patience: forever,
		header: map[string]string{"Connection": "Upgrade", "Upgrade": "tcp"}})
	if err != nil {
		return 0, 0, err
	}
	defer cancel()
	stop := context.AfterFunc(d.ctx, func() { resp.Body.Close() })
	defer stop()
	defer resp.Body.Close()
	sent := make(chan error, 1)
	if cmd.stdin != nil {
		go func() { sent <- feed(resp.Body, cmd.stdin) }()
	} else {
		sent <- nil
	}
	err = demultiplex(resp.Body, cmd.stdout, cmd.stderr)
	resp.Body.Close()
	wrong := <-sent
	switch {
	case d.ctx.Err() != nil:
		return 0, 0, d.ctx.Err()
	case err != nil:
		return 0, 0, unable("exec_start", fmt.Sprintf("cannot read the output from Docker at %s: %s", d.where, err))
	case wrong != nil:
		d.Logger().Debug("A command in a container did not read all of its input", "error", wrong)
	}
	info, err := d.dict("exec_inspect", request{id: made["Id"]})
	if err != nil {
		return 0, 0, err
	}
	code, _ = info["ExitCode"].(int64)
	pid, _ = info["Pid"].(int64)
	return code, pid, nil
}

// feed writes standard input to a connection that was taken over, and ends it.
func feed(conn io.ReadCloser, from io.Reader) error {
	w, ok := conn.(interface {
		io.Writer
		CloseWrite() error
	})
	if !ok {
		return errors.New("cannot send standard input: Docker did not open a stream in both directions")
	}
	if _, err := io.Copy(w, from); err != nil {
		return err
	}
	return w.CloseWrite()
}

// quiet runs a command with a clean environment and keeps its output.
func (d *client) quiet(name any, words ...string) (code int64, stdout, stderr string, err error) {
	var out, errs output
	code, _, err = d.exec(name, command{words: append([]string{"env", "-i", containerPath}, words...), stdout: &out, stderr: &errs})
	return code, string(out.text), pytext.StripRight(d.text(&errs)), err
}

// words splits a command as a shell does. With a shell of the host, which stock has between, variables, pipes, patterns and the like would
// be the host's: they are refused.
func (d *client) words(cmd string) ([]string, error) {
	if !d.Bool("python_shell") {
		return shlex.Split(cmd)
	}
	quote := rune(0)
	begins, escaped := true, false
	for _, r := range cmd {
		special := false
		switch {
		case escaped:
			escaped = false
			special = quote == '"' && (r == '$' || r == '`')
		case quote == '\'':
			if r == '\'' {
				quote = 0
			}
		case r == '\\':
			escaped = true
		case quote == '"' && r == '"':
			quote = 0
		case r == '$' || r == '`':
			special = true
		case quote == '"':
		case r == '"' || r == '\'':
			quote = r
		default:
			special = strings.ContainsRune("|&;<>()*?[\n", r) || begins && (r == '#' || r == '~')
		}
		if special {
			return nil, modules.Usagef("cannot run %s: %q would be for a shell; give the whole as one text to a shell of the container, as in sh -c '...', or "+
				"set python_shell=False", pytext.Repr(cmd), r)
		}
		begins = quote == 0 && !escaped && (r == ' ' || r == '\t')
	}
	return shlex.Split(cmd)
}

// runCommand implements docker.run and the functions that return another part of a command's result.
func (d *client) runCommand(fun string) (any, error) {
	return d.runText(fun, d.Value("name"), d.Str("cmd"))
}

func (d *client) runText(fun string, name any, cmd string) (any, error) {
	driver := d.Value("exec_driver")
	if driver == nil {
		if driver = option(d.Call, "docker.exec_driver"); driver == nil {
			driver = "docker-exec"
		}
	}
	switch driver {
	case "docker-exec":
	case "lxc-attach", "nsenter":
		return nil, modules.Usagef("cannot run a command by %s: the only command execution driver here is docker-exec", driver)
	default:
		return nil, modules.Usagef("Invalid command execution driver. Valid drivers are: lxc-attach, nsenter, docker-exec")
	}
	var words []string
	if keep := d.Value("keep_env"); keep != true {
		words = []string{"env", "-i", containerPath}
		var kept []any
		if _, isBool := keep.(bool); !isBool && keep != nil {
			kept = splitInput(keep)
		}
		for _, x := range kept {
			if x == "PATH" {
				words = words[:2]
			}
		}
		for _, x := range kept {
			if v, ok := d.Context().Getenv(pytext.Str(x)); ok {
				words = append(words, pytext.Str(x)+"="+v)
			}
		}
	}
	own, err := d.words(cmd)
	if err != nil {
		return nil, err
	}
	run := command{words: append(words, own...)}
	if v := d.Value("stdin"); pytext.Truth(v) {
		run.stdin = strings.NewReader(strings.ReplaceAll(pytext.Str(v), `\n`, "\n"))
	}
	var out, errs output
	run.stdout, run.stderr = &out, &errs
	if fun == "run" {
		run.stderr = &out
	}
	code, pid, err := d.exec(name, run)
	if err != nil {
		return nil, err
	}
	if d.Bool("ignore_retcode") {
		d.SetRetcode(0)
	} else {
		d.SetRetcode(int(code))
	}
	stdout, stderr := pytext.StripRight(d.text(&out)), pytext.StripRight(d.text(&errs))
	switch fun {
	case "retcode":
		return code, nil
	case "run", "run_stdout":
		return stdout, nil
	case "run_stderr":
		return stderr, nil
	}
	return dict{"pid": pid, "retcode": code, "stdout": stdout, "stderr": stderr}, nil
}

// running refuses a container that does not run.
func (d *client) running(name any) error {
	s, err := d.state(name)
	if err == nil && s != "running" {
		err = modules.Errorf("Container '%s' is not running", pytext.Str(name))
	}
	return err
}

// sumIn returns the checksum of a file in a container, or "" if it cannot be read.
func (d *client) sumIn(name any, file string) (string, error) {
	_, out, _, err := d.quiet(name, "sha256sum", file)
	sum, _, _ := strings.Cut(strings.TrimSpace(out), " ")
	return sum, err
}

// sumHere returns the checksum of a file on this host, or "" if it cannot be read.
func (d *client) sumHere(file string) string {
	f, err := os.Open(d.Path(file))
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// cached returns the path of a source. It fetches a file of the master to the cache first.
func (d *client) cached(source any) (string, error) {
	s, ok := source.(string)
	if !ok {
		return "", modules.Usagef("Invalid source file %s", pytext.Str(source))
	}
	if !strings.HasPrefix(s, "salt://") {
		return s, nil
	}
	v, err := d.Exec(d.ctx, "cp.cache_file", s)
	if local, _ := v.(string); local != "" || err != nil {
		return local, err
	}
	return "", modules.Errorf("Unable to cache %s", s)
}

// copyTo copies a file of this host into a container (salt/modules/container_resource.py copy_to).
func (d *client) copyTo(name, from any, dest string, overwrite, makedirs bool) (any, error) {
	source, err := d.cached(from)
	if err != nil {
		return nil, err
	}
	if err := d.running(name); err != nil {
		return nil, err
	}
	info, err := os.Stat(d.Path(source))
	switch {
	case !path.IsAbs(source):
		return nil, modules.Usagef("Source path must be absolute")
	case err != nil:
		return nil, modules.Usagef("Source file %s does not exist", source)
	case !info.Mode().IsRegular():
		return nil, modules.Usagef("Source must be a regular file")
	case !path.IsAbs(dest):
		return nil, modules.Usagef("Destination path must be absolute")
	}
	test := func(flag, file string) (bool, error) {
		code, _, _, err := d.quiet(name, "test", flag, file)
		return code == 0, err
	}
	isDir, err := test("-d", dest)
	if err != nil {
		return nil, err
	}
	if isDir {
		dest = path.Join(dest, path.Base(source))
	} else if err := d.parentIn(name, path.Dir(dest), makedirs, test); err != nil {
		return nil, err
	}
	if !overwrite {
		if there, err := test("-e", dest); err != nil || there {
			if err == nil {
				err = modules.Errorf("Destination path %s already exists. Use overwrite=True to overwrite it", dest)
			}
			return nil, err
		}
	}
	sum := d.sumHere(source)
	if had, err := d.sumIn(name, dest); err != nil || had == sum {
		return err == nil, err
	}
	f, err := os.Open(d.Path(source))
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer f.Close()
	var nothing output
	// tee keeps the mode and owner of an existing file, and works in a container that runs as another user.
	_, _, err = d.exec(name, command{words: []string{"env", "-i", containerPath, "tee", dest}, stdin: f, stdout: io.Discard, stderr: &nothing})
	if err != nil {
		return nil, err
	}
	now, err := d.sumIn(name, dest)
	return now == sum, err
}

func (d *client) parentIn(name any, dir string, makedirs bool, test func(flag, file string) (bool, error)) error {
	there, err := test("-d", dir)
	if err != nil || there {
		return err
	}
	if !makedirs {
		return modules.Usagef("Directory %s does not exist on docker container '%s'", dir, pytext.Str(name))
	}
	code, _, said, err := d.quiet(name, "mkdir", "-p", dir)
	if err == nil && code != 0 {
		text := "Unable to create destination directory " + dir + " in container '" + pytext.Str(name) + "'"
		if said != "" {
			text += ": " + said
		}
		err = modules.Errorf("%s", text)
	}
	return err
}

// copyFrom copies a file of a container to this host.
func (d *client) copyFrom() (any, error) {
	name, source, dest := d.Value("name"), d.Str("source"), d.Str("dest")
	if err := d.running(name); err != nil {
		return nil, err
	}
	if !path.IsAbs(dest) {
		return nil, modules.Usagef("Destination path must be absolute")
	}
	if info, err := os.Stat(d.Path(dest)); err == nil && info.IsDir() {
		dest = path.Join(dest, path.Base(source))
	} else if err := d.parentHere(path.Dir(dest), d.Bool("makedirs")); err != nil {
		return nil, err
	}
	if _, err := os.Stat(d.Path(dest)); err == nil && !d.Bool("overwrite") {
		return nil, modules.Errorf("Destination path %s already exists. Use overwrite=True to overwrite it", dest)
	}
	if !path.IsAbs(source) {
		return nil, modules.Usagef("Source path must be absolute")
	}
	for _, ask := range [...][2]string{{"-e", "Source file " + source + " does not exist"}, {"-f", "Source must be a regular file"}} {
		code, _, _, err := d.quiet(name, "test", ask[0], source)
		if err != nil {
			return nil, err
		}
		if code != 0 {
			return nil, modules.Usagef("%s", ask[1])
		}
	}
	sum, err := d.sumIn(name, source)
	if err != nil || sum != "" && sum == d.sumHere(dest) {
		return err == nil, err
	}
	if err := d.fetch(name, source, dest); err != nil {
		return nil, err
	}
	return sum == d.sumHere(dest), nil
}

func (d *client) parentHere(dir string, makedirs bool) error {
	if info, err := os.Stat(d.Path(dir)); err == nil && info.IsDir() {
		return nil
	}
	if !makedirs {
		return modules.Usagef("Directory %s does not exist", dir)
	}
	if err := os.MkdirAll(d.Path(dir), 0o755); err != nil {
		text, _ := modules.OSErrorText(err)
		return modules.Errorf("Unable to make destination directory %s: %s", dir, text)
	}
	return nil
}

// fetch gets a file out of a container. A link is followed, so that the file itself comes.
func (d *client) fetch(name any, source, dest string) error {
	for range 10 {
		link, err := d.fetchOnce(name, source, dest)
		if err != nil || link == "" {
			return err
		}
		if source = path.Join(path.Dir(source), link); path.IsAbs(link) {
			source = link
		}
	}
	return modules.Errorf("cannot copy %s: too many links", source)
}

func (d *client) fetchOnce(name any, source, dest string) (link string, err error) {
	resp, cancel, err := d.open("get_archive", request{id: name, query: dict{"path": source}, patience: forever})
	if err != nil {
		return "", err
	}
	defer cancel()
	defer resp.Body.Close()
	archive := tar.NewReader(resp.Body)
	head, err := archive.Next()
	if err != nil {
		return "", unable("get_archive", fmt.Sprintf("cannot read %s from Docker at %s: %s", source, d.where, err))
	}
	switch head.Typeflag {
	case tar.TypeSymlink:
		return head.Linkname, nil
	case tar.TypeReg:
	default:
		return "", modules.Errorf("cannot copy %s: it is no regular file", source)
	}
	return "", d.writeFile(dest, fs.FileMode(head.Mode)&0o777, func(w io.Writer) error {
		_, err := io.Copy(w, archive)
		return err
	})
}

// writeFile writes a file of this host: it is whole or not there.
func (d *client) writeFile(dest string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(d.Path(dest)), ".docker")
	if err != nil {
		return modules.OSError(err)
	}
	defer os.Remove(f.Name())
	if err = write(f); err == nil {
		err = f.Chmod(mode)
	}
	if wrong := f.Close(); err == nil {
		err = wrong
	}
	if d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	if err == nil {
		err = os.Rename(f.Name(), d.Path(dest))
	}
	return err
}

// script runs a file of the master in a container.
func (d *client) script(fun string) (any, error) {
	name, source := d.Value("name"), d.Str("source")
	f, err := os.CreateTemp(d.Path("/tmp"), "salt*"+path.Ext(source))
	if err != nil {
		return nil, modules.OSError(err)
	}
	f.Close()
	defer os.Remove(f.Name())
	file := "/tmp/" + filepath.Base(f.Name())
	var got any
	if d.Bool("template") {
		got, err = d.Exec(d.ctx, "cp.get_template", source, file, d.Value("template"), d.Str("saltenv"))
	} else {
		got, err = d.Exec(d.ctx, "cp.cache_file", source, d.Str("saltenv"))
	}
	if err != nil {
		return nil, err
	}
	local, _ := got.(string)
	if local == "" {
		if fun == "script_retcode" {
			return int64(1), nil
		}
		return dict{"pid": int64(0), "retcode": int64(1), "stdout": "", "stderr": "", "cache_error": true}, nil
	}
	if !d.Bool("template") {
		text, err := os.ReadFile(d.Path(local))
		if err == nil {
			err = os.WriteFile(d.Path(file), text, 0o600)
		}
		if err != nil {
			return nil, modules.OSError(err)
		}
	}
	if _, err := d.copyTo(name, file, file, false, false); err != nil {
		return nil, err
	}
	cleaner := *d
	cleaner.ctx = context.WithoutCancel(d.ctx)
	defer cleaner.quiet(name, "rm", file)
	if _, _, _, err := d.quiet(name, "chmod", "700", file); err != nil {
		return nil, err
	}
	cmd := file
	if args := d.Value("args"); pytext.Truth(args) {
		cmd += " " + pytext.Str(args)
	}
	part := "run_all"
	if fun == "script_retcode" {
		part = "retcode"
	}
	ret, err := d.runText(part, name, cmd)
	d.SetRetcode(0) // of the command that removes the script, which is the last one
	return ret, err
}
