//go:build openstack

package trove

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/modules"
	fsmod "github.com/brine-salt/brine/modules/fs"
	"github.com/brine-salt/brine/modules/mount"
	"github.com/brine-salt/brine/modules/xfs"
)

// TestTroveT2Replay lets Trove's own managers and ours live the same lives, each with servers and volumes of its own, and compares
// answers, messages to the conductor, files and servers.
func TestTroveT2Replay(t *testing.T) {
	if err := exec.Command("/usr/bin/python3", "-c", "import trove").Run(); err != nil {
		prereq.Missing(t, "Trove for /usr/bin/python3 (Debian: python3-trove)")
	}
	for _, name := range slices.Sorted(maps.Keys(replayScenarios)) {
		t.Run(name, func(t *testing.T) { replayScenarios[name].run(t) })
	}
}

// replaySide is one of the two agents, with all of its instances.
type replaySide struct {
	t        *testing.T
	agents   []*replayAgent
	saved    map[string]string // answers as JSON, by name
	scenario replayScenario
}

// replayAgent is an agent in an instance.
type replayAgent struct {
	*instance
	call           func(fun string, kwargs map[string]any, admin bool) map[string]any
	published      func(prefix string) string
	forget         func()
	config         string // of the server, with the agent's own paths
	root, device   string // where the volume is mounted for the agent, and what
	plain          *strings.Replacer
	moreConfigLine string
}

func (s replayScenario) run(t *testing.T) {
	t.Parallel()
	if s.container {
		s.store, _ = testserver.Dir(t, "")
		if err := os.Chmod(s.store, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	theirs := replaySide{t: t, saved: map[string]string{}, scenario: s}
	ours := replaySide{t: t, saved: map[string]string{}, scenario: s}
	for range s.instances {
		theirs.agents = append(theirs.agents, s.troveAgent(t))
		ours.agents = append(ours.agents, s.ourAgent(t, ours.agents))
	}
	calls, refused := 0, 0
	for _, step := range s.steps {
		want, got := theirs.do(step), ours.do(step)
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%d %s %s (-Trove's +ours):\n%s", step.on, step.fun, step.kwargs, diff)
		}
		if !strings.HasPrefix(step.fun, "(") {
			calls++
			if strings.Contains(want, `"error"`) {
				refused++
			}
		}
	}
	t.Logf("%d calls, %d of them refused", calls, refused)
}

// newInstance is an instance whose paths the agents are given.
func (s replayScenario) newInstance(t *testing.T, more map[string]any) *replayAgent {
	t.Helper()
	a := &replayAgent{}
	if s.datastore == managerPostgres {
		a.instance = newPostgres(t, more)
		// Trove's pg_rewind does not read the archive of the log.
		a.config, a.moreConfigLine = a.postgresConfig()+"wal_keep_size = 256MB\n", "max_connections = 21\n"
		a.plain = strings.NewReplacer("'"+a.dir+"'", "'/var/run/postgresql'", a.dir+"/etc", "/etc/postgresql", a.dir, "/var/lib/postgresql", a.port, "PORT")
	} else {
		a.instance = newInstance(t, more)
		a.config, a.moreConfigLine = a.instance.config(), "max_heap_table_size=1M\n"
		a.plain = strings.NewReplacer(a.dir+"/etc", "/etc/mysql", a.dir+"/s", "/var/run/mysqld/mysqld.sock", a.dir+"/pid", "/var/run/mysqld/pid",
			a.dir, "/var/lib/mysql", a.port, "PORT")
	}
	a.root = a.dir
	if s.volume {
		a.addVolume()
	}
	return a
}

// addVolume makes a device whose file system has half of its size, and a place for it.
func (a *replayAgent) addVolume() {
	t := a.t
	t.Helper()
	dir, _ := testserver.Dir(t, "")
	image := filepath.Join(dir, "image")
	a.root = filepath.Join(dir, "volume")
	err := errors.Join(os.Mkdir(a.root, 0o755), os.WriteFile(image, nil, 0o600), os.Truncate(image, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	testserver.Run(t, nil, "mkfs.ext3", "-q", "-F", image, "32M")
	out, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		prereq.Missing(t, "loop devices")
	}
	a.device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		_ = syscall.Unmount(a.root, syscall.MNT_DETACH)
		testserver.Run(t, nil, "losetup", "--detach", a.device)
	})
	a.plain = strings.NewReplacer(a.root, "VOLUME", a.device, "DEVICE")
}

// ourAgent is this package in an instance. All instances of a side have one store.
func (s replayScenario) ourAgent(t *testing.T, others []*replayAgent) *replayAgent {
	t.Helper()
	more := map[string]any{"volume_fstype": "ext3"}
	if len(others) > 0 {
		more["store"] = others[0].opts["trove"].(map[string]any)["store"]
	}
	socket := ""
	if s.container {
		socket = testserver.Docker(t)
		image, uid := loadReplayImages(t, socket, s.datastore)
		maps.Copy(more, map[string]any{"way": wayContainer, "docker_socket": socket, "docker_image": image, "database_service_uid": uid, "service": "none"})
	}
	a := s.newInstance(t, more)
	a.opts["trove"].(map[string]any)["error_log"] = a.dir + "/mysqld.log" // empty, as Trove's: this server writes to another
	if s.volume {
		a.opts["trove"].(map[string]any)["mount_point"] = a.root
		a.reg = modules.NewRegistry(Module, fsmod.Module, mount.Module, xfs.Module)
	}
	a.call = func(fun string, kwargs map[string]any, admin bool) map[string]any {
		if admin {
			kwargs["context"] = map[string]any{"is_admin": true}
		}
		answer := map[string]any{"sent": []any{}}
		v, err := a.run(fun, kwargs)
		switch {
		case err == nil:
			answer["return"] = v
		case isServerError(err) || strings.HasPrefix(err.Error(), "cannot connect to the datastore"):
			answer["error"] = nil // of the server: its text is the library's
		default:
			answer["error"], _, _ = strings.Cut(err.Error(), "\nExc: ")
		}
		answer["sent"] = a.conducted()
		return answer
	}
	a.published = func(prefix string) string {
		var all strings.Builder
		root := filepath.Join(a.dir, "store", "database_logs")
		err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasPrefix(p, filepath.Join(root, prefix)) {
				return err
			}
			b, err := os.ReadFile(p)
			all.Write(b)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return all.String()
	}
	a.forget = func() {
		if !s.container {
			return
		}
		if out, err := exec.CommandContext(t.Context(), "docker", "--host=unix://"+socket, "rm", "--force", databaseContainer).CombinedOutput(); err != nil {
			t.Fatalf("docker rm: %v\n%s", err, out)
		}
	}
	return a
}

// conducted returns what was sent to Trove's conductor since the last call: the method and its arguments.
func (i *instance) conducted() []any {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := []any{}
	for _, e := range i.events {
		args := maps.Clone(e.data)
		delete(args, "sent")
		if strings.HasSuffix(e.tag, "/trove/"+heartbeatTag) {
			args["instance_id"] = args["id"]
			delete(args, "id")
		}
		list = append(list, []any{filepath.Base(e.tag), args})
	}
	i.events = nil
	return list
}

// troveAgent is Trove's own manager in an instance, in a mount namespace in which the paths of its code are the instance's. With containers
// it is the namespace of a Docker daemon.
func (s replayScenario) troveAgent(t *testing.T) *replayAgent {
	t.Helper()
	a := s.newInstance(t, nil)
	u, err := user.Lookup(a.owner)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(a.command[0]) + ":/usr/sbin:/usr/bin:/sbin:/bin"
	enter, env := []string{"unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"}, []string{"PATH=" + bin}
	if s.container {
		docker, pid := testserver.DockerAfter(t, fmt.Sprintf("sh '%s/mounts.sh' '%s' %s %s", scripts, a.dir, s.datastore, u.Uid))
		image, _ := loadReplayImages(t, docker, s.datastore)
		enter = []string{"nsenter", "--target", strconv.Itoa(pid), "--mount", "--net", "--pid"}
		env = append(env, "DOCKER_SOCKET="+docker, "DOCKER_IMAGE="+image, "STORE="+s.store)
	}
	argv := append(enter, "sh", scripts+"/manager.sh", a.dir, s.datastore, a.port, u.Uid, bin)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	socket := "mysqld.sock"
	link := a.dir + "/s"
	if s.datastore == managerPostgres {
		socket = ".s.PGSQL." + a.port
		link = a.dir + "/" + socket
	}
	if err := os.Symlink("run/"+socket, link); err != nil {
		t.Fatal(err)
	}
	if s.volume {
		cmd.Env = append(cmd.Env, "VOLUME="+a.root, "FSTYPE=ext3")
	} else {
		a.config = a.plainConfig()
		a.root = map[string]string{managerPostgres: "/var/lib/postgresql", managerMaria: "/var/lib/mysql"}[s.datastore]
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("Trove's manager: %v", err)
		}
		if t.Failed() {
			t.Logf("Trove's manager said:\n%s", stderr.String()[max(0, stderr.Len()-6000):])
		}
	})
	lines := bufio.NewReader(out)
	a.call = func(method string, kwargs map[string]any, admin bool) map[string]any {
		t.Helper()
		if _, err := in.Write([]byte(quoteJSON([]any{method, kwargs, admin}) + "\n")); err != nil {
			t.Fatalf("%s: %v\n%s", method, err, stderr.String())
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			_ = cmd.Wait()
			t.Fatalf("%s: %v\n%s", method, err, stderr.String())
		}
		answer := map[string]any{}
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	a.published = func(prefix string) string {
		return fmt.Sprint(a.call("published", map[string]any{"prefix": prefix}, false)["return"])
	}
	a.forget = func() { a.call("remove the container", map[string]any{}, false) }
	return a
}

// plainConfig is the configuration with Trove's own paths, and this instance's port.
func (a *replayAgent) plainConfig() string {
	return strings.ReplaceAll(a.plain.Replace(a.config), "PORT", a.port)
}

// do makes a step, and returns what is compared.
func (s *replaySide) do(step replayStep) string {
	s.t.Helper()
	a := s.agents[step.on]
	text := s.fill(a, step.kwargs)
	var answer any
	switch step.fun {
	case stepSQL:
		if s.scenario.datastore == managerPostgres {
			return a.plain.Replace(a.psql("postgres", text))
		}
		return a.plain.Replace(a.query(text))
	case stepDump:
		if s.scenario.datastore == managerMaria {
			return a.dumpMaria()
		}
		return strings.Join(a.dump(), "\n")
	case stepConfig:
		return s.withoutPorts(a.files())
	case stepForget:
		a.forget()
		return ""
	case stepPublished:
		all := a.published(a.args(text)["prefix"].(string))
		return strings.Join(regexp.MustCompile(`[a-z]+ canary`).FindAllString(all, -1), "\n")
	}
	m := a.call(step.fun, a.args(text), step.admin)
	b, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	m = answer.(map[string]any)
	if step.save != "" {
		s.saved[step.save] = quoteJSON(m["return"])
	}
	for _, sent := range m["sent"].([]any) {
		if args := sent.([]any)[1].(map[string]any); args["state"] == backupCompleted {
			s.saved["backup"] = quoteJSON(map[string]any{"location": args["location"], "checksum": args["checksum"]})
		}
	}
	if step.hide == "*" {
		m["return"] = form(m["return"])
	}
	b, err = json.MarshalIndent(hide(m, append(strings.Fields(step.hide), "location", "checksum", "size", "created", "updated")), "", " ")
	if err != nil {
		s.t.Fatal(err)
	}
	return s.withoutPorts(a.plain.Replace(string(b)))
}

// dumpMaria dumps the databases and the users of the instance, but for those of the server and its administrators.
func (i *instance) dumpMaria() string {
	i.t.Helper()
	dump := func(args ...string) string {
		i.t.Helper()
		out, err := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "mariadb-dump"), append([]string{"--defaults-file=" + i.dir + "/conf.d/os_admin.cnf",
			"--socket=" + i.dir + "/s", "--skip-comments"}, args...)...).CombinedOutput()
		if err != nil {
			i.t.Fatalf("mariadb-dump: %v: %s", err, out)
		}
		return string(out)
	}
	names := strings.Split(i.query("SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('mysql', 'information_schema', "+
		"'performance_schema', 'sys') ORDER BY 1"), "\n")
	text := dump(append([]string{"--routines", "--databases"}, names...)...)
	var users []string // in the order in which the server stores them
	own := regexp.MustCompile("`(os_admin|root|mysql|mariadb\\.sys)`|'(os_admin|root|mysql|mariadb\\.sys)'@")
	for line := range strings.Lines(dump("--system=users")) {
		if !own.MatchString(line) {
			users = append(users, line)
		}
	}
	slices.Sort(users)
	return text + strings.Join(users, "")
}

// withoutPorts names the servers' ports, which are chance.
func (s *replaySide) withoutPorts(text string) string {
	for n, other := range s.agents {
		text = strings.ReplaceAll(text, other.port, fmt.Sprintf("PORT of %d", n))
	}
	return text
}

// fill writes the values of names into the arguments of a step.
func (s *replaySide) fill(a *replayAgent, text string) string {
	s.t.Helper()
	if text == "" {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(s.saved)) {
		v := s.saved[name]
		text = strings.ReplaceAll(text, "$"+name+"{", strings.TrimSuffix(v, "}"))
		text = strings.ReplaceAll(text, "$"+name, v)
	}
	text = strings.NewReplacer("$CONFIG", quoteJSON(a.config), "$MORECONFIG", quoteJSON(a.config+a.moreConfigLine), "$DIR", a.root,
		"$DEVICE", a.device).Replace(text)
	if strings.Contains(text, "$") {
		s.t.Fatalf("%s has a name that no answer was saved under", text)
	}
	return text
}

// files are the files of the configuration. Trove's order of options is another, and ident_file is ours alone.
func (a *replayAgent) files() string {
	a.t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(a.dir+"/etc", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		lines := slices.DeleteFunc(strings.Split(strings.ReplaceAll(a.plain.Replace(string(b)), "\r", ""), "\n"), func(line string) bool {
			return line == "" || strings.HasPrefix(line, "ident_file=")
		})
		if filepath.Base(p) != "pg_hba.conf" {
			slices.Sort(lines)
		} else {
			for i := range lines {
				lines[i] = strings.Join(strings.Fields(lines[i]), " ")
			}
		}
		fmt.Fprintf(&all, "%s\n\t%s\n", strings.TrimPrefix(p, a.dir), strings.Join(lines, "\n\t"))
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return regexp.MustCompile(`password=\w+`).ReplaceAllString(all.String(), "password=x")
}

// hide shows the forms of the values of some keys.
func hide(v any, keys []string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if slices.Contains(keys, k) {
				v[k] = form(x)
			} else {
				v[k] = hide(x, keys)
			}
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i], keys)
		}
	}
	return v
}

// form is what a value that is chance has in common with others of its kind.
func form(v any) any {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "file://") {
			return "a location"
		}
		return regexp.MustCompile(`[0-9A-Za-z]+`).ReplaceAllString(v, "x")
	case float64:
		return "a number"
	case []any:
		for i := range v {
			v[i] = form(v[i])
		}
	}
	return v
}

// guest is the agent in the instance, outside of a call.
func (i *instance) guest() *guest {
	i.t.Helper()
	s, err := readSettings(i.opts["trove"])
	if err != nil {
		i.t.Fatal(err)
	}
	return &guest{settings: s, c: i.reg.NewCall(i.env, "trove.rpc_ping", "", nil)}
}
