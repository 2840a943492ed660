//go:build openstack && trove

package trove

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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

// patience is how long a test waits for an expected event; reaching it fails the test.
const patience = 4 * time.Minute

// broker is the version of the datastore whose guests use the broker, like those of Trove's Python agent.
const broker = "10.11-broker"

// guestsWanted is the initial value of the option guests.
const guestsWanted = "*, !mariadb/" + broker

// canary is the password that must not appear anywhere.
const canary = "k4n4rie-of-the-test"

// These are the addresses of the host of Trove's services, and of the router port of its guests.
const (
	inNetwork = "BRINE_TROVE_NETWORK"
	address   = "192.0.2.11"
)

var (
	dir    string // for programs, volumes and backups
	bin    string
	nova   *cloud.Cloud
	cloudL *lab.Lab
	net    *lab.Network
	dbaas  *lab.Trove
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(inNetwork) == "" {
		os.Exit(again())
	}
	os.Exit(run(m))
}

// again builds the programs and runs the tests in a process with its own network, in which guests are behind a
// router, and with its own mounts, which end with the process.
func again() int {
	dir, err := os.MkdirTemp("", "brine-trove-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // the database's user needs access to it
		log.Print(err)
		return 1
	}
	for _, b := range [][2]string{{"../../..", "./cmd/brine-master"}, {"../..", "./cmd/trove-minion"}} {
		cmd := exec.Command("go", append(append([]string{"build", "-o", dir + "/bin/"}, buildflags.Release()...), b[1])...)
		cmd.Dir = b[0]
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			log.Printf("cannot build %s: %v\n%s", b[1], err, out)
			return 1
		}
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inNetwork+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal is sent when the thread ends
	if err := cmd.Run(); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

func run(m *testing.M) (code int) {
	dir = os.Getenv(inNetwork)
	bin = filepath.Join(dir, "bin")
	if err := start(); err != nil {
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

func start() (err error) {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot use loopback: %w: %s", err, out)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot have mounts of its own: %w", err)
	}
	for _, d := range []string{filepath.Join(dir, "volumes"), backups()} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if nova, err = cloud.Start(); err != nil {
		return err
	}
	nova.OnBoot(boot)
	nova.SetObjects(backups()) // Trove asks Swift for the checksum of a backup before it restores it
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if cloudL, err = lab.Start(ctx, lab.Options{Logf: log.Printf, Engines: -1, Endpoints: nova.Endpoints()}); err != nil {
		return err
	}
	if net, err = cloudL.StartNetwork(ctx, address); err != nil {
		return err
	}
	python, err := filepath.Abs("../../python")
	if err != nil {
		return err
	}
	dbaas, err = cloudL.StartTrove(ctx, lab.TroveOptions{Brine: filepath.Join(bin, "brine-master"), Python: python, Address: address,
		Versions: []string{broker, "10.11"}, Conf: map[string]map[string]string{
			"DEFAULT": {"agent_heartbeat_expiry": "5", "agent_call_low_timeout": "15", "notification_transport_url": "",
				"default_log_levels": "brine_openstack=DEBUG"},
			"brine": {"guests": guestsWanted},
		}})
	if err != nil {
		return err
	}
	return net.Allow(ctx, dbaas.Guests...)
}

// A guest runs for an instance: a machine with the image of an instance, and its agent.
type guest struct {
	*lab.Guest
	// minion reports whether the instance was told the address of a Salt master.
	minion bool
	// log is the output of its agent.
	log string
	// started is the process that started the agent in the guest. It ends when the agent is stopped, and does not
	// restart it.
	started *lab.Process
	argv    []string // its command line
}

var (
	mu     sync.Mutex
	delays = map[string]time.Duration{} // how long the guest of an instance waits before it boots, by the instance's name
	guests = map[string]*guest{}        // by the instance's name
	booted int
)

// boot starts what the machine's user data requests, as cloud-init and the services of an image do.
func boot(ctx context.Context, i cloud.Instance) (func(), error) {
	files, err := filesOf(i)
	if err != nil {
		return nil, err
	}
	mu.Lock()
	delay := delays[i.Name]
	booted++
	name := fmt.Sprintf("%s-%d", i.Name, booted)
	mu.Unlock()
	g := &guest{minion: files["/etc/salt/minion.d/99-bootstrap.conf"] != nil || files["/etc/salt/minion.d/brine-trove.conf"] != nil,
		log: filepath.Join(cloudL.Dir, "log", "guest-"+name+"-agent.log")}
	later, cancel := context.WithCancel(ctx)
	started := make(chan struct{})
	var port *lab.Port
	go func() {
		defer close(started)
		select {
		case <-time.After(delay):
		case <-later.Done():
			return
		}
		var err error
		// Trove's agent would reach the broker over the network; here the broker is on loopback.
		if g.minion {
			if port, err = net.Port(later, i.Addresses[0]); err != nil {
				log.Print(err)
				return
			}
		}
		// The guest sees only mounts that exist when it is created.
		if err = mountVolume(i.Metadata["trove_instance_id"]); err == nil {
			g.Guest, err = cloudL.StartGuestAt(later, name, port)
		}
		if err == nil {
			err = g.startAgent(later, i, files)
		}
		if err != nil {
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
		if g.Guest != nil {
			g.Close()
		}
		if port != nil {
			port.Close()
		}
	}, nil
}

// volume returns the mount point of an instance's volume, which has the size that Trove requested. It remains when
// the machine is rebuilt.
func volume(id string) string { return filepath.Join(dir, "volumes", id) }

// mountVolume creates the volume of an instance if it does not exist.
func mountVolume(id string) error {
	v := volume(id)
	if err := os.Mkdir(v, 0o755); err != nil {
		if os.IsExist(err) {
			return nil
		}
		return err
	}
	return syscall.Mount("volume", v, "tmpfs", 0, "size=1g,mode=755")
}

// backups returns the directory of all guests' backups.
func backups() string { return filepath.Join(dir, "backups") }

// image is the configuration of an image's agent, whose beacon has an interval in seconds.
func image(interval int) string {
	return fmt.Sprintf("log_level: debug\nlog_file: /dev/null\nbeacons: {trove: [{interval: %d}]}\n"+
		"trove: {datastore_manager: mariadb, state_change_poll_time: 0.5, store: {type: directory, path: %s}}\n", interval, backups())
}

// startAgent does what an image does at boot: it prepares the volume and cloud-init's files, and starts the agent.
func (g *guest) startAgent(ctx context.Context, i cloud.Instance, files map[string][]byte) error {
	service, err := os.ReadFile("testdata/mariadb.sh")
	if err != nil {
		return err
	}
	files["/etc/salt/minion"] = []byte(image(1))
	for name, content := range files {
		if err := g.WriteFile(name, string(content), 0o600); err != nil {
			return err
		}
	}
	if err := g.WriteFile("/etc/init.d/mariadb", string(service), 0o755); err != nil {
		return err
	}
	script := "set -e\nmount --bind " + volume(i.Metadata["trove_instance_id"]) + " /var/lib/mysql\nrm -f /etc/mysql/my.cnf\n: >/etc/mysql/my.cnf\n" +
		"mkdir -p /opt/trove-guestagent\n"
	for _, name := range []string{"salt-minion", "salt-call"} {
		script += "ln -sf " + filepath.Join(bin, "trove-minion") + " /usr/bin/" + name + "\n"
	}
	if _, err := g.RunInput(ctx, script, "sh", "-s"); err != nil {
		return err
	}
	g.argv = []string{"/usr/bin/salt-minion"}
	if !g.minion {
		program, err := filepath.Abs("testdata/broker_guest.py")
		if err != nil {
			return err
		}
		text, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		if err := g.WriteFile("/opt/broker_guest.py", string(text), 0o755); err != nil {
			return err
		}
		g.argv = []string{"/usr/bin/python3", "-W", "ignore", "/opt/broker_guest.py", "/etc/trove/conf.d/guest_info.conf",
			"/etc/trove/conf.d/trove-guestagent.conf"}
	}
	return g.run()
}

// run starts the agent.
func (g *guest) run() (err error) {
	g.started, err = g.Start("agent", nil, g.argv...)
	return err
}

// end stops the agent as an init system does, and waits for its end.
func (g *guest) end(t *testing.T) {
	t.Helper()
	for _, p := range g.agents(t) {
		must(t, syscall.Kill(p.Pid, syscall.SIGTERM))
	}
	select {
	case <-g.started.Done():
	case <-time.After(patience):
		t.Fatalf("%v does not end", g.argv)
	}
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

// calls returns how often the guest started each function of the module trove.
func (g *guest) calls(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(g.log)
	must(t, err)
	out := map[string]int{}
	for _, m := range regexp.MustCompile(`Executing command trove\.(\w+) with jid`).FindAllSubmatch(b, -1) {
		out[string(m[1])]++
	}
	return out
}

// agents are the processes of the guest's agent.
func (g *guest) agents(t *testing.T) []lab.Proc {
	t.Helper()
	all, err := g.Processes()
	must(t, err)
	return slices.DeleteFunc(all, func(p lab.Proc) bool { return !strings.HasPrefix(p.Command, strings.Join(g.argv, " ")) })
}

// agent returns the process of the guest's minion, by its id on the host.
func (g *guest) agent(t *testing.T) int {
	t.Helper()
	all := g.agents(t)
	if len(all) != 1 {
		t.Fatalf("the guest has the agents %+v, want one", all)
	}
	return all[0].Pid
}

// query runs a statement as root on the guest's server.
func (g *guest) query(t *testing.T, statement string) string {
	t.Helper()
	out, err := g.Run(t.Context(), "mariadb", "--no-defaults", "--batch", "--skip-column-names", "--execute", statement)
	must(t, err)
	return strings.TrimSpace(out)
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

// openstack runs the command line client that Trove's users have, and decodes its output.
func openstack(t *testing.T, out any, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
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

// commandEnv returns the environment of an administrator's command line.
func commandEnv() []string {
	return append(cloudL.Env(), "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME="+cloudL.Dir, "PYTHONWARNINGS=ignore")
}

// snippet returns the snippet of docs/openstack/trove.md with this name.
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

// api sends a request to trove-api as the administrator, and decodes its answer.
func api(t *testing.T, method, path string, body, out any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	token, project, err := cloudL.Heat.Token(ctx)
	must(t, err)
	var content io.Reader // Trove refuses a body where it expects none
	if body != nil {
		text, err := json.Marshal(body)
		must(t, err)
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, dbaas.URL+"/v1.0/"+project+path, content)
	must(t, err)
	req.Header.Set("X-Auth-Token", token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if out != nil {
		must(t, json.Unmarshal(answer, out))
	}
}

// create starts the creation of an instance with users, each with the canary as its password, and returns its id. The
// instance is deleted at the end of the test.
func create(t *testing.T, name, version string, users ...string) string {
	t.Helper()
	list := []any{}
	for _, u := range users {
		list = append(list, map[string]any{"name": u, "password": canary})
	}
	var out struct{ Instance struct{ ID string } }
	api(t, "POST", "/instances", map[string]any{"instance": map[string]any{"name": name, "flavorRef": "1", "volume": map[string]any{"size": 1},
		"nics": []any{map[string]any{"net-id": tenantNet}}, "datastore": map[string]any{"type": "mariadb", "version": version},
		"databases": []any{map[string]any{"name": "shop"}}, "users": list}}, &out)
	created(t, name, out.Instance.ID)
	return out.Instance.ID
}

// createByCommand is like create, with the command line client.
func createByCommand(t *testing.T, name string, more ...string) string {
	t.Helper()
	var out struct{ ID string }
	must(t, openstack(t, &out, append([]string{"instance", "create", name, "--flavor", "1", "--size", "1", "--nic", "net-id=" + tenantNet,
		"--datastore", "mariadb", "--datastore-version", "10.11"}, more...)...))
	created(t, name, out.ID)
	return out.ID
}

// tenantNet is the tenant's network.
const tenantNet = "11111111-1111-1111-1111-111111111111"

// created deletes an instance at the end of the test.
func created(t *testing.T, name, id string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of the guest %s:\n%s", name, cloudL.LogsOf("guest-"+name+"-*", 6000))
		}
		if sql(t, "select deleted from instances where id = '"+id+"'") == "0" {
			if t.Failed() { // it may be in a state in which Trove does not delete it
				sql(t, "update instances set task_id = 1 where id = '"+id+"'")
			}
			api(t, "DELETE", "/instances/"+id, nil, nil)
			gone(t, id)
		}
		if err := syscall.Unmount(volume(id), 0); err != nil {
			t.Errorf("cannot unmount the volume of %s: %v", name, err)
		}
	})
}

// gone waits until Trove has deleted an instance.
func gone(t *testing.T, id string) {
	t.Helper()
	eventually(t, "instance "+id+" is gone", func() bool { return sql(t, "select deleted from instances where id = '"+id+"'") == "1" })
}

// sql returns one value of Trove's database.
func sql(t *testing.T, query string) string {
	t.Helper()
	out, err := cloudL.SQL(context.WithoutCancel(t.Context()), "use trove; "+query)
	must(t, err)
	return strings.TrimSpace(out)
}

// healthy waits until Trove has finished its work on an instance and shows it as healthy.
func healthy(t *testing.T, id string) {
	t.Helper()
	eventually(t, "instance "+id+" is healthy", func() bool {
		return sql(t, "select concat(i.task_id, ' ', s.status_description) from instances i join service_statuses s on s.instance_id = i.id where i.id = '"+id+"'") == "1 healthy"
	})
}
