//go:build openstack && trove

package trove

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/buildflags"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/openstack/lab"
	"github.com/brine-salt/brine/openstack/lab/cloud"
)

// patience is how long a test waits for something that should happen; reaching it fails the test.
const patience = 2 * time.Minute

// broker is the version of the datastore whose guests are on the broker, as those of Trove's Python agent are.
const broker = "10.11-broker"

// guestsWanted is the option guests at first.
const guestsWanted = "*, !mariadb/" + broker

// canary is the password that must be nowhere.
const canary = "k4n4rie-of-the-test"

var (
	bin    string
	nova   *cloud.Cloud
	cloudL *lab.Lab
	dbaas  *lab.Trove
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "brine-trove-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = filepath.Join(dir, "bin")
	if err := start(dir); err != nil {
		log.Print(err)
		code = 1
	} else if code = m.Run(); code != 0 {
		fmt.Println(cloudL.LogsOf("trove-*", 20000))
	}
	if nova != nil {
		nova.Close()
	}
	if cloudL != nil {
		if err := cloudL.Close(); err != nil {
			log.Print(err)
			code = 1
		}
	}
	return code
}

func start(dir string) (err error) {
	cmd := exec.Command("go", append(append([]string{"build", "-o", bin + "/"}, buildflags.Release()...), "./cmd/brine-minion", "./cmd/brine-master")...)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build: %w\n%s", err, out)
	}
	if nova, err = cloud.Start(); err != nil {
		return err
	}
	nova.OnBoot(boot)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if cloudL, err = lab.Start(ctx, lab.Options{Logf: log.Printf, Engines: -1, Endpoints: nova.Endpoints()}); err != nil {
		return err
	}
	python, err := filepath.Abs("../../python")
	if err != nil {
		return err
	}
	dbaas, err = cloudL.StartTrove(ctx, lab.TroveOptions{Brine: filepath.Join(bin, "brine-master"), Python: python,
		Versions: []string{broker, "10.11"}, Conf: map[string]map[string]string{
			"DEFAULT": {"agent_heartbeat_expiry": "5", "agent_call_low_timeout": "15", "notification_transport_url": ""},
			"brine":   {"guests": guestsWanted},
		}})
	return err
}

// A guest is what runs for an instance.
type guest struct {
	dir string
	// minion reports whether the instance was told of a Salt master.
	minion bool
	cmd    *exec.Cmd
}

var (
	mu     sync.Mutex
	delays = map[string]time.Duration{} // until the guest of an instance boots, by the instance's name
	guests = map[string]*guest{}        // by the instance's name
)

// boot starts what the machine's user data asks for, as cloud-init and the services of an image do.
func boot(ctx context.Context, i cloud.Instance) (func(), error) {
	mu.Lock()
	delay := delays[i.Name]
	mu.Unlock()
	dir, err := os.MkdirTemp(filepath.Dir(bin), "guest-")
	if err != nil {
		return nil, err
	}
	files, err := filesOf(i)
	if err != nil {
		return nil, err
	}
	g := &guest{dir: dir}
	if g.minion = files["/etc/salt/minion.d/99-bootstrap.conf"] != nil || files["/etc/salt/minion.d/brine-trove.conf"] != nil; g.minion {
		err = g.writeMinion(files)
	} else {
		err = g.writeBroker(files)
	}
	if err != nil {
		return nil, err
	}
	later, cancel := context.WithCancel(ctx)
	started := make(chan struct{})
	go func() {
		defer close(started)
		select {
		case <-time.After(delay):
		case <-later.Done():
			return
		}
		if err := g.cmd.Start(); err != nil {
			log.Print(err)
			return
		}
		mu.Lock()
		guests[i.Name] = g
		mu.Unlock()
	}()
	return func() {
		cancel()
		<-started
		if g.cmd.Process != nil {
			g.cmd.Process.Kill()
			g.cmd.Wait()
		}
	}, nil
}

// filesOf returns the files that cloud-init would write.
func filesOf(i cloud.Instance) (map[string][]byte, error) {
	parts, err := cloud.Parts(i.UserData)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, p := range parts {
		v, err := yaml.Parse(p.Content, "user_data")
		if err != nil {
			return nil, err
		}
		doc, _ := v.(map[string]any)
		list, _ := doc["write_files"].([]any)
		for _, f := range list {
			f, _ := f.(map[string]any)
			content, err := base64.StdEncoding.DecodeString(fmt.Sprint(f["content"]))
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(f["path"])] = content
		}
	}
	for name, content := range i.Files {
		out[name] = content
	}
	return out, nil
}

func (g *guest) writeMinion(files map[string][]byte) error {
	conf := map[string]any{}
	for _, name := range []string{"99-bootstrap.conf", "brine-trove.conf"} {
		if content := files["/etc/salt/minion.d/"+name]; content != nil {
			if err := json.Unmarshal(content, &conf); err != nil {
				return err
			}
		}
	}
	if conf["join_token"] == nil {
		conf["join_token"] = strings.TrimSpace(string(files["/etc/salt/join_token"]))
	}
	delete(conf, "join_token_file")
	for name, value := range map[string]string{"root_dir": "", "log_file": "log", "pidfile": "pid", "cachedir": "cache", "sock_dir": "run",
		"pki_dir": "pki"} {
		conf[name] = filepath.Join(g.dir, value)
	}
	conf["user"], conf["log_level_logfile"] = "root", "debug"
	conf["schedule"] = map[string]any{"beat": map[string]any{"function": "trove.beat", "seconds": 1}}
	text, err := json.Marshal(conf)
	if err != nil {
		return err
	}
	module, err := os.ReadFile("testdata/trove.py")
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(g.dir, "modules.d"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(g.dir, "modules.d", "trove.py"), module, 0o755); err != nil {
		return err
	}
	g.cmd = g.command(filepath.Join(bin, "brine-minion"), "minion", "-c", g.dir)
	return os.WriteFile(filepath.Join(g.dir, "minion"), text, 0o600)
}

func (g *guest) writeBroker(files map[string][]byte) error {
	argv := []string{"testdata/broker_guest.py"}
	for _, name := range []string{"guest_info.conf", "trove-guestagent.conf"} {
		path := filepath.Join(g.dir, name)
		if err := os.WriteFile(path, files["/etc/trove/conf.d/"+name], 0o600); err != nil {
			return err
		}
		argv = append(argv, path)
	}
	g.cmd = g.command("/usr/bin/python3", append([]string{"-W", "ignore"}, argv...)...)
	return nil
}

func (g *guest) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + g.dir, "LANG=C.UTF-8"}
	out, err := os.Create(filepath.Join(g.dir, "output"))
	if err == nil {
		cmd.Stdout, cmd.Stderr = out, out
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// calls returns how often each function ran in the guest.
func (g *guest) calls(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		name, _, _ := strings.Cut(line, " ")
		out[name]++
	}
	return out
}

// guestOf returns the guest of an instance that has booted.
func guestOf(t *testing.T, name string) *guest {
	t.Helper()
	var g *guest
	eventually(t, "the guest of "+name, func() bool {
		mu.Lock()
		defer mu.Unlock()
		g = guests[name]
		return g != nil
	})
	return g
}

// openstack runs the command line of Trove's users and decodes what it prints.
func openstack(t *testing.T, out any, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out != nil {
		args = append(args, "-f", "json")
	}
	cmd := exec.CommandContext(ctx, "/usr/bin/openstack", append([]string{"database"}, args...)...)
	cmd.Env = commandEnv()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("openstack database %s: %w: %s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(stdout.Bytes(), out)
}

// commandEnv is the environment of an administrator's command line.
func commandEnv() []string {
	return append(cloudL.Env(), "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME="+cloudL.Dir, "PYTHONWARNINGS=ignore")
}

// snippet returns the snippet of docs/openstack/trove.md that has this name.
func snippet(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/openstack/trove.md")
	must(t, err)
	m := regexp.MustCompile("(?s)```sh " + name + "\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no snippet %s", name)
	}
	return string(m[1])
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// create starts the creation of an instance and returns its id. It is deleted with the test.
func create(t *testing.T, name, version string, more ...string) string {
	t.Helper()
	var out struct{ ID string }
	must(t, openstack(t, &out, append([]string{"instance", "create", name, "--flavor", "1", "--size", "1", "--nic",
		"net-id=11111111-1111-1111-1111-111111111111", "--datastore", "mariadb", "--datastore-version", version}, more...)...))
	t.Cleanup(func() {
		if t.Failed() {
			mu.Lock()
			g := guests[name]
			mu.Unlock()
			if g != nil {
				for _, f := range []string{"output", "log", "calls"} {
					b, _ := os.ReadFile(filepath.Join(g.dir, f))
					t.Logf("%s of %s:\n%s", f, name, b[max(0, len(b)-4000):])
				}
			}
		}
	})
	return out.ID
}

// sql returns one value of Trove's database.
func sql(t *testing.T, query string) string {
	t.Helper()
	out, err := cloudL.SQL(t.Context(), "use trove; "+query)
	must(t, err)
	return strings.TrimSpace(out)
}

// healthy waits until Trove has nothing to do for an instance and shows it as healthy.
func healthy(t *testing.T, id string) {
	t.Helper()
	eventually(t, "instance "+id+" is healthy", func() bool {
		return sql(t, "select concat(i.task_id, ' ', s.status_description) from instances i join service_statuses s on s.instance_id = i.id where i.id = '"+id+"'") == "1 healthy"
	})
}
