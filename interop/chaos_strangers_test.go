//go:build chaos && linux

package interop

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/ws"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

const (
	honestID      = "honest" // signs in repeatedly; the minion that gets the jobs is honestMinion
	honestMinion  = "one"
	honestAddr    = "127.0.0.2" // address of both
	localStranger = "127.0.0.9"

	// slowerThanSink limits the effect of a flood: the honest minion's p99 may be at most this multiple of the
	// control's.
	slowerThanSink = 1.2
	// descriptors is the master's limit of descriptors.
	descriptors = 1024
)

// budget is what a flood may use of the master's resources; see docs/limits.md.
type budget struct {
	memory int64 // MiB more than a master without a flood
	disk   int64 // bytes per second
	atOnce int64 // bytes on the disk in addition
}

// strangerSite is a master, an honest minion, and a generator of floods with its sink.
type strangerSite struct {
	t         *testing.T
	c         *campaign
	transport string
	site      *site
	dialer    transport.Dialer
	master    *process
	client    *client.Client
	key       *crypt.PrivateKey // of honestID
	masterKey *crypt.PublicKey
	aes       *crypt.Key
	token     []byte
	http      int // port
	host      string
	far, near *child // generators: on another network, and on this host
	sink      *child
	sinkPort  int
	idle      int64           // bytes of memory before the first flood
	next      map[windows]int // number of the next connection
}

// windows identifies the windows of a flood, or those of its control.
type windows struct {
	flood  string
	toSink bool
}

// child is this test program in another role.
type child struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// startChild starts this program in a role, with the command wrap before it.
func startChild(t *testing.T, role string, wrap ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := append(wrap, exe)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), strangerRole+"="+role)
	cmd.Stderr = os.Stderr
	c := &child{t: t}
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

// run makes a generator run an order and returns its report.
func (c *child) run(o order) (d done, err error) {
	b, err := json.Marshal(o)
	if err == nil {
		_, err = c.in.Write(append(b, '\n'))
	}
	if err == nil {
		b, err = c.out.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	return d, err
}

// controlGroups moves this process, and everything that it starts later, into a control group with precedence over
// the other work of the machine, so that this work hardly disturbs the campaign. It returns a command that starts
// another one in a group below it with half a core, in periods of 10 ms.
func controlGroups(t *testing.T) []string {
	t.Helper()
	root, weight, half := "/sys/fs/cgroup/cpu", [2]string{"cpu.shares", "262144"}, [][2]string{{"cpu.cfs_period_us", "10000"}, {"cpu.cfs_quota_us", "5000"}}
	if _, err := os.Stat(root); err != nil {
		root, weight, half = "/sys/fs/cgroup", [2]string{"cpu.weight", "10000"}, [][2]string{{"cpu.max", "5000 10000"}}
	}
	set := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	home, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	was := regexp.MustCompile(`(?m)^\d+:(?:cpu|cpu,cpuacct|):(/.*)$`).FindSubmatch(home)
	if was == nil {
		t.Fatalf("this process is in no control group:\n%s", home)
	}
	all := fmt.Sprintf("%s/brine-strangers-%d-%s", root, os.Getpid(), filepath.Base(tempDir(t)))
	for _, dir := range []string{all, all + "/half", all + "/rest"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			await(t, "the control group is empty", func() bool { return os.Remove(dir) == nil })
		})
		if dir == all && root == "/sys/fs/cgroup" {
			set(dir+"/cgroup.subtree_control", "+cpu")
		}
	}
	set(all+"/"+weight[0], weight[1])
	for _, f := range half {
		set(all+"/half/"+f[0], f[1])
	}
	self := fmt.Sprint(os.Getpid())
	set(all+"/rest/cgroup.procs", self)
	t.Cleanup(func() { set(root+string(was[1])+"/cgroup.procs", self) })
	return []string{"sh", "-c", fmt.Sprintf(`echo $$ >%s/half/cgroup.procs && exec "$@"`, all), "sh"}
}

// elsewhere creates a network namespace with a cable to this host. It returns a command that starts another one
// there, and this host's address on the cable.
func elsewhere(t *testing.T) (wrap []string, host string) {
	t.Helper()
	name := fmt.Sprintf("brine%ds", os.Getpid())
	cable := fmt.Sprintf("bs%d", os.Getpid()%100000)
	network := fmt.Sprintf("10.214.%d", os.Getpid()%250)
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		_ = exec.Command("ip", "link", "del", cable).Run()
		_ = exec.Command("ip", "netns", "del", name).Run()
	})
	run("netns", "add", name)
	run("link", "add", cable, "type", "veth", "peer", "name", "cable", "netns", name)
	run("addr", "add", network+".2/24", "dev", cable)
	run("link", "set", cable, "up")
	run("-n", name, "addr", "add", network+".1/24", "dev", "cable")
	run("-n", name, "link", "set", "cable", "up")
	wrap = []string{"ip", "netns", "exec", name}
	// There are more connections than ports in the minute for which a closed connection keeps its port.
	args := append(wrap[1:], "sysctl", "-qw", "net.ipv4.tcp_tw_reuse=1", "net.ipv4.ip_local_port_range=1025 65000")
	run(args...)
	return wrap, network + ".2"
}

// newStrangerSite starts the master, the minion, the generators and the sink. The master has accepted the key of the
// honest minions.
func newStrangerSite(t *testing.T, c *campaign, transportName string) *strangerSite {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("control groups and network namespaces need root")
	}
	inCore := controlGroups(t)
	for _, program := range []string{"ip", "prlimit", "sysctl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the strangers need the program %s (iproute2, util-linux, procps)", program)
		}
	}
	s := &strangerSite{t: t, c: c, transport: transportName, site: newSite(t, transportName, ""), next: make(map[windows]int),
		dialer: map[string]transport.Dialer{"zeromq": zeromq.New(), "tcp": tcp.New(), "ws": ws.New()}[transportName], http: freeport.Port(t)}
	text, err := os.ReadFile(s.site.config())
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.site.config(), strings.Replace(string(text), "interface: 127.0.0.1", "interface: 0.0.0.0", 1)+fmt.Sprintf(`
rest_cherrypy: {port: %d, host: 0.0.0.0, disable_ssl: true}
netapi_enable_clients: [local]
external_auth: {file: {^filename: %s/users, alice: ['.*'], honest: ['test.*']}}
audit_log: %s/audit.log
`, s.http, s.site.dir, s.site.dir))
	write(t, s.site.dir+"/users", "alice:secret\nhonest:secret\n")
	if s.key, err = crypt.GenerateKey(2048); err != nil {
		t.Fatal(err)
	}
	write(t, s.site.dir+"/pki/minions/"+honestID, s.key.Public().Text())
	s.master = start(t, "prlimit", fmt.Sprintf("--nofile=%d:%d", descriptors, descriptors), ours("salt-master"), "-c", filepath.Dir(s.site.config()))
	await(t, "the master serves", func() bool {
		return listening(s.site.ret) && listening(s.site.pub) && listening(s.http) && exists(s.site.dir+"/run/master_event_pub.ipc")
	})
	minion := s.site.minion(t, honestMinion, "source_address: "+honestAddr+"\n")
	write(t, minion+"/minion.d/quiet.conf", "log_level: warning\n")
	start(t, ours("salt-minion"), "-c", minion)
	await(t, "the minion's key waits", func() bool {
		_, code := output(t, ours("salt-key"), "-c", filepath.Dir(s.site.config()), "-y", "-a", honestMinion)
		return code == 0 && exists(s.site.dir+"/pki/minions/"+honestMinion)
	})
	s.client, err = client.New(client.Options{Dialer: s.dialer, Addr: fmt.Sprintf("127.0.0.1:%d", s.site.ret), SockDir: s.site.dir + "/run",
		CacheDir: s.site.dir + "/cache", PKIDir: s.site.dir + "/pki", User: "root", KeyFile: s.site.dir + "/cache/.root_key", PublishTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	await(t, "the minion answers", func() bool { _, err := s.job(t.Context()); return err == nil })
	if _, err := s.signIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	there, host := elsewhere(t)
	s.host = host
	s.far = startChild(t, "generator", append(slices.Clone(inCore), there...)...)
	s.near = startChild(t, "generator", inCore...)
	s.sink = startChild(t, "sink")
	if _, err := fmt.Fscan(s.sink.out, &s.sinkPort); err != nil {
		t.Fatalf("the sink: %v", err)
	}
	s.measure(time.Second, false) // the first ones are slower
	s.idle = s.memory("VmRSS")
	return s
}

// job measures the round trip of a job, from the tool's publish to the minion's return.
func (s *strangerSite) job(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	begin := time.Now()
	r, err := s.client.Run(ctx, client.Command{Fun: "test.ping", Tgt: []any{honestMinion}, TgtType: "list"}, client.RunOptions{Timeout: 10 * time.Second})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for ret := range r.Returns(ctx) {
		if ret.Status != client.Returned || ret.Value != true {
			return 0, fmt.Errorf("the job came back as %v, %v", ret.Status, ret.Value)
		}
		return time.Since(begin), nil
	}
	return 0, fmt.Errorf("the job did not return: %w", ctx.Err())
}

// signIn measures a sign-in over a separate connection, from its opening to the keys.
func (s *strangerSite) signIn(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	begin := time.Now()
	r, err := s.dialer.Requester(transport.ClientOptions{RequestAddr: fmt.Sprintf("127.0.0.1:%d", s.site.ret), RequestSource: honestAddr})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	in := protocol.Signin{ID: honestID, Key: s.key, MasterKey: s.masterKey, AES: s.aes, ClearToken: s.token}
	e, err := in.Request()
	if err != nil {
		return 0, err
	}
	body, err := e.Marshal()
	if err != nil {
		return 0, err
	}
	reply, err := r.Request(ctx, body)
	if err != nil {
		return 0, err
	}
	v, err := payload.Unmarshal(reply)
	if err != nil {
		return 0, err
	}
	result, err := in.Reply(v)
	if err != nil || result.Status != protocol.Accepted {
		return 0, fmt.Errorf("sign-in: %v, %w", result.Status, err)
	}
	if s.masterKey == nil {
		s.masterKey, s.token = result.MasterKey, in.ClearToken
	}
	s.aes = result.AES
	return time.Since(begin), nil
}

// login logs in to the HTTP interface with the right password.
func (s *strangerSite) login(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(honestAddr)}, Timeout: 10 * time.Second}
	h := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: 20 * time.Second}
	body, _ := json.Marshal(map[string]any{"username": "honest", "password": "secret", "eauth": "file"})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/login", s.http), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("log-in: %s, %w", resp.Status, err)
	}
	return time.Since(begin), nil
}

// pause is the time between two sign-ins of the honest minion. It has two jobs in this time.
const pause = 25 * time.Millisecond

// served is the times of the honest minion in a slice.
type served struct{ signIns, jobs, logins []time.Duration }

// measure signs in, runs jobs and, if logins is set, logs in, each repeatedly for the duration d.
func (s *strangerSite) measure(d time.Duration, logins bool) (out served) {
	ctx := s.t.Context()
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	again := func(into *[]time.Duration, what string, every time.Duration, do func(context.Context) (time.Duration, error)) {
		wg.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				next := time.Now().Add(every)
				took, err := do(ctx)
				if err != nil {
					s.c.breaks("%s of the honest minion: %v", what, err)
				}
				*into = append(*into, took)
				time.Sleep(time.Until(next))
			}
		})
	}
	again(&out.signIns, "sign-in", pause, s.signIn)
	again(&out.jobs, "job", pause/2, s.job) // cheaper than a sign-in
	if logins {
		again(&out.logins, "log-in", 5*pause, s.login)
	}
	wg.Wait()
	return out
}

// memory returns a field of the master's process status in bytes.
func (s *strangerSite) memory(field string) int64 {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.master.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), field+":")
	words := strings.Fields(rest)
	if len(words) < 2 {
		s.t.Fatalf("no %s", field)
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n << 10
}

// cpu returns the processor time that the master has used.
func (s *strangerSite) cpu() time.Duration {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.master.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	words := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var ticks int64
	for _, w := range words[11:13] { // user, system
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// disk returns how many bytes the master uses on the disk, including its logs, without the honest minion's jobs.
func (s *strangerSite) disk() (total int64) {
	for _, dir := range []string{s.site.dir, s.master.log} {
		_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // removed in the meantime
			}
			if d.IsDir() && name == filepath.Join(s.site.dir, honestMinion) {
				return fs.SkipDir
			}
			if d.IsDir() && name == filepath.Join(s.site.dir, "cache", "jobs") {
				return fs.SkipDir
			}
			if strings.HasPrefix(d.Name(), "jobs.sqlite") {
				return nil
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				total += info.Size()
			}
			return nil
		})
	}
	return total
}

// addr returns the address of a flood's target.
func (s *strangerSite) addr(f flood) string {
	port := map[string]int{"request": s.site.ret, "publish": s.site.pub}[f.port]
	if f.transport == "http" {
		port = s.http
	}
	return fmt.Sprintf("%s:%d", s.peer(f), port)
}

func (s *strangerSite) peer(f flood) string {
	if f.local {
		return "127.0.0.1"
	}
	return s.host
}

// slice runs a part of a flood, or of its control, while the honest minion is measured.
func (s *strangerSite) slice(f flood, length time.Duration, rate float64, toSink bool) (served, done) {
	// The sink gets the same connections as the master: connection n of a flood always sends the same bytes.
	kind := windows{f.name, toSink}
	generator, o := s.far, order{Flood: f.name, First: s.next[kind], Addr: s.addr(f), Sink: toSink, Seconds: length.Seconds(), Rate: rate}
	if f.local {
		generator, o.Source = s.near, localStranger
	}
	if toSink {
		o.Addr = fmt.Sprintf("%s:%d", s.peer(f), s.sinkPort)
	}
	var did done
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { did, err = generator.run(o) })
	out := s.measure(length, f.transport == "http")
	wg.Wait()
	if err != nil {
		s.t.Fatalf("the generator: %v", err)
	}
	s.next[kind] += did.Conns
	return out, did
}

// controlOnly returns the flood that goes to the sink on both sides.
func controlOnly() flood {
	f, _ := floodNamed(controlFlood)
	return f
}

// controlFlood is the name of that flood.
const controlFlood = "control against itself"

// floodNamed returns a flood of the campaign.
func floodNamed(name string) (flood, bool) {
	all := floods()
	i := slices.IndexFunc(all, func(f flood) bool { return f.name == name })
	if i < 0 {
		return flood{}, false
	}
	return all[i], true
}

// The memory that a flood may use on the master in MiB, by the budgets in docs/limits.md. The garbage collector may
// leave the same amount uncollected. Each of the 832 connections that the master's descriptors allow holds up to 4
// KiB of a message in addition to its buffers and stacks, together about 28 KiB. 16 MiB are for the honest work.
const (
	connMemory  = 16 + 2*24
	smallMemory = connMemory + 2*32
	largeMemory = connMemory + 2*256
	httpMemory  = connMemory + 2*64
)

// The bytes that one address may write to the disk per second, and at once: lines of the audit log and of the
// ordinary log, of up to 1 KiB each.
const (
	auditDisk, auditAtOnce = 5 * 4096, 50 * 4096
	logDisk, logAtOnce     = 1024, 20 * 1024
	// signInDisk is the size of the files of a sign-in with a new id: a key and a line.
	signInDisk = 1024
)

// floods returns the rows of the campaign.
func floods() []flood {
	conns := budget{connMemory, logDisk, logAtOnce}
	small := budget{smallMemory, auditDisk + logDisk, auditAtOnce + logAtOnce}
	large := budget{largeMemory, auditDisk + logDisk, auditAtOnce + logAtOnce}
	web := budget{httpMemory, auditDisk + logDisk, auditAtOnce + logAtOnce}
	newcomers := budget{connMemory, 200*signInDisk + logDisk, logAtOnce}
	held := func(f flood) flood {
		f.held, f.rate, f.atOnce = true, 1000, 4000
		return f
	}
	list := []flood{{name: controlFlood, bytes: othersID, rate: 500, atOnce: 64, budget: conns}}
	for _, t := range []string{"zeromq", "tcp", "ws"} {
		request := func(f flood) flood {
			f.transport, f.port, f.atOnce = t, "request", 64
			if t != "zeromq" {
				f.name, f.short = f.name+", "+t, false
			}
			return f
		}
		list = append(list,
			held(request(flood{name: "idle after the handshake", bytes: constant(opening(t, "request")), budget: conns, short: true})),
			request(flood{name: "mutated openings", bytes: mutatedOpenings(t), budget: conns}),
			request(flood{name: "mutated sign-ins", bytes: mutatedSignIns(t), budget: newcomers}),
			request(flood{name: "new ids", bytes: newIDs(t), budget: newcomers, short: true}),
			request(flood{name: "publish with a wrong key, 60 KB", bytes: wrongKey(t), budget: small, short: true}),
			request(flood{name: "sealed by nobody, 60 KB", bytes: sealed(t), budget: small}),
			held(request(flood{name: "half messages of 64 KB", bytes: started(t, 65000, 60000), drip: time.Second, budget: small})),
		)
		if t == "zeromq" {
			list = append(list,
				held(request(flood{name: "silent connections", bytes: constant(nil), budget: conns})),
				request(flood{name: "PINGs", bytes: pings, budget: conns}),
				request(flood{name: "another's id", bytes: othersID, budget: conns}),
				request(flood{name: "publish with a wrong key, this host", local: true, bytes: wrongKey(t), budget: small}),
				request(flood{name: "wrong passwords of tools, this host", local: true, bytes: wrongPassword, budget: small}),
				flood{name: "HTTP log-ins, wrong passwords", transport: "http", bytes: wrongLogins, atOnce: 64, budget: web},
				flood{name: "HTTP calls of 1 MB", transport: "http", bytes: wrongRuns, atOnce: 64, budget: web},
				held(flood{name: "slow heads", transport: "http", bytes: slowHead, drip: time.Second, budget: conns}),
				held(request(flood{name: "half messages of 4 KB", bytes: started(t, 4000, 3900), drip: time.Second, budget: conns})),
				flood{name: "subscribers", transport: t, port: "publish", bytes: constant(opening(t, "publish")), held: true, rate: 1000, atOnce: 4000, budget: conns},
			)
		}
		list = append(list, request(flood{name: "bombs", bytes: bombs(t), budget: large}))
		if t == "zeromq" {
			f := held(request(flood{name: "half messages of 90 MB", bytes: started(t, 90<<20, 1<<20), drip: time.Second, budget: large}))
			f.rate = 100
			list = append(list, f)
		}
	}
	return list
}

const (
	// A row consists of blocks of four windows: flood, control, control, flood, or the reverse in every second block.
	// Drift, and the effects of one window on the next, then concern both alike. Each row has minBlocks. A row that was
	// over slowerThanSink once gets further blocks, in turn with other such rows, until its whole interval is below, it
	// has maxBlocks, or the time is over. It does not end when the ratio alone happens to be below.
	minBlocks, maxBlocks = 5, 40
	// windowTime is the length of a window. heldTime is that for a flood whose connections stay open, which takes a
	// second to fill the master.
	windowTime, heldTime = 1 * time.Second, 2 * time.Second
	// shortTime is the length in the short form, which has one block for each flood; all of them together are one
	// row. The p99 of its hundred samples has no meaning: next to other work on the machine it was 0.9 to 2.2 times
	// that of the control. Therefore the medians are compared, and shortBar is greater than the machine's effect on
	// them.
	shortTime, shortBar = 500 * time.Millisecond, 1.75
	// After maxStrangersTime no row continues beyond minBlocks. Each transport has a share of this time.
	maxStrangersTime = 23 * time.Minute
)

// TestChaosStrangers attacks a master with peers that have no key, from a generator with half a core, while an honest
// minion signs in from another address and jobs are sent to it. At the 99th percentile, the sign-ins and jobs may take at
// most a fifth longer than while the generator sends the same bytes to a sink. None of them may fail, and memory and disk
// use must stay within the limits of docs/limits.md.
//
// The ratio of the two percentiles is within its interval with a probability of 95 %, by resampling the windows. The
// verdicts of the table are:
//
//	below:     the whole interval is at most 1.2
//	above:     the whole interval is above 1.2
//	undecided: 1.2 is within the interval; the ratio itself decides, after all the time that a row may take if it was
//	           above 1.2 once
//
// The first row of each transport compares the control with itself. TestChaosRepeat has twenty such rows.
func TestChaosStrangers(t *testing.T) {
	c := newStrangersCampaign(t, "Strangers")
	if !chaosFull() {
		t.Run("zeromq", func(t *testing.T) { attackShortly(t, c) })
		return
	}
	rows := make(map[string][]flood)
	left := 0
	transports := []string{"zeromq", "tcp", "ws"}
	for _, name := range transports {
		rows[name] = []flood{controlOnly()}
	}
	for _, f := range floods() {
		name := f.transport
		if name == "http" {
			name = "zeromq"
		}
		rows[name] = append(rows[name], f)
	}
	for _, r := range rows {
		left += len(r)
	}
	end := c.begun.Add(maxStrangersTime)
	for _, name := range transports {
		now, n := time.Now(), len(rows[name])
		part := now.Add(end.Sub(now) * time.Duration(n) / time.Duration(left))
		left -= n
		t.Run(name, func(t *testing.T) { newStrangerSite(t, c, name).attack(t, rows[name], part) })
	}
}

// attackShortly runs the short form: one block of each flood that belongs to it.
func attackShortly(t *testing.T, c *campaign) {
	s := newStrangerSite(t, c, "zeromq")
	together := newTally(s, flood{name: "all of the short form"})
	for _, f := range floods() {
		if f.short && (f.transport == s.transport || f.transport == "http") {
			one := newTally(s, f)
			one.block(shortTime)
			one.budgets()
			one.print("")
			together.add(one)
		}
	}
	together.judgeMedians()
}

// TestChaosRepeat measures the reliability of a row of TestChaosStrangers: of twenty rows that compare the control
// with itself, at most one may exceed the limit. It has no short form.
func TestChaosRepeat(t *testing.T) {
	if !chaosFull() {
		t.Skip("no short form")
	}
	c := newStrangersCampaign(t, "Strangers, control against itself")
	s := newStrangerSite(t, c, "zeromq")
	var over []string
	for i := range 20 {
		y := newTally(s, controlOnly())
		for !y.complete() {
			y.block(windowTime)
		}
		v := y.verdict()
		if y.print(v.text); v.over {
			over = append(over, fmt.Sprintf("row %d: %s", i+1, v.text))
		}
	}
	if len(over) > 1 {
		c.breaks("%d of 20 rows are over the bar, with nothing to tell the two sides apart: %q", len(over), over)
	}
}

func newStrangersCampaign(t *testing.T, title string) *campaign {
	// In memory, because waiting for the disk during honest jobs would hide the cost of the floods.
	t.Setenv("TMPDIR", "/dev/shm")
	return newCampaign(t, title, "flood", "connections", "MB", "MB to the sink", "sign-ins", "p99", "control", "ratio", "jobs", "p99", "control", "ratio",
		"verdict", "processor", "control", "generator", "control", "memory MB", "of", "disk KB", "of")
}

// attack measures the rows of some floods, including the control against itself, judges them and prints them. After
// end no row continues beyond minBlocks.
func (s *strangerSite) attack(t *testing.T, floods []flood, end time.Time) {
	var rows []*tally
	// The memory that the master has not given back after one flood counts for the next one.
	floods = slices.SortedStableFunc(slices.Values(floods), func(a, b flood) int { return cmp.Compare(a.budget.memory, b.budget.memory) })
	for _, f := range floods {
		t.Run(f.name, func(*testing.T) {
			y := newTally(s, f)
			for range minBlocks {
				y.block(f.windowTime())
			}
			y.budgets()
			rows = append(rows, y)
		})
	}
	for again := true; again; {
		again = false
		for _, y := range rows {
			if !y.complete() && time.Now().Before(end) {
				again = true
				y.block(y.f.windowTime())
			}
		}
	}
	for _, y := range rows {
		v := y.verdict()
		if y.print(v.text); v.over {
			s.c.breaks("%s: the p99 of sign-ins is %v times that of the control, of jobs %v times (%s); at most %.2f are allowed", y.f.name, v.signIns, v.jobs, v.text, slowerThanSink)
		}
	}
}

// windowTime returns the length of a window in the full form.
func (f flood) windowTime() time.Duration {
	if f.held {
		return heldTime
	}
	return windowTime
}

// complete reports whether a row needs no more blocks. Few windows have a small interval by chance, therefore a row that
// was over the limit once must be below it with its whole interval.
func (y *tally) complete() bool {
	if y.blocks < minBlocks {
		return false
	}
	v := y.verdict()
	y.suspect = y.suspect || v.over
	return y.blocks >= maxBlocks || !y.suspect || v.decided && !v.over
}

// tally is the results of a flood and of its control.
type tally struct {
	s *strangerSite
	f flood

	blocks            int
	suspect           bool     // was over the limit once
	flood, control    []served // of each window
	did, controlDid   done
	cpu, controlCPU   time.Duration
	disk, maxDisk     int64
	memory, maxMemory int64
	length            time.Duration // of all windows of the flood
}

// newTally begins a row.
func newTally(s *strangerSite, f flood) *tally {
	s.t.Helper()
	// The peak memory of the master counts from here on.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.master.cmd.Process.Pid), []byte("5"), 0); err != nil {
		s.t.Fatal(err)
	}
	return &tally{s: s, f: f}
}

// block runs four windows, two of the flood and two of the control.
func (y *tally) block(length time.Duration) {
	y.s.t.Helper()
	first, then := y.floodWindow, y.controlWindow
	if y.blocks%2 == 1 {
		first, then = then, first
	}
	first(length)
	then(length)
	then(length)
	first(length)
	y.blocks++
}

func (y *tally) floodWindow(length time.Duration) {
	disk, cpu := y.s.disk(), y.s.cpu()
	served, did := y.s.slice(y.f, length, 0, y.f.name == controlFlood)
	y.disk += y.s.disk() - disk
	y.cpu += y.s.cpu() - cpu
	y.flood = append(y.flood, served)
	y.did.add(did)
	y.length += length
}

// controlWindow runs a window in which the sink gets the connections that the master got, at such a rate that after the
// window the sink got as many in a second as the master: a flood may be faster in one window than in another. The table
// shows the processor time of the generator for both, because it has more work if the master closes or answers
// connections.
func (y *tally) controlWindow(length time.Duration) {
	disk, cpu := y.s.disk(), y.s.cpu()
	due := y.did.Parts/y.did.Seconds*(y.controlDid.Seconds+length.Seconds()) - y.controlDid.Parts
	served, did := y.s.slice(y.f, length, max(due/length.Seconds(), 1), true)
	y.disk -= y.s.disk() - disk
	y.controlCPU += y.s.cpu() - cpu
	y.control = append(y.control, served)
	y.controlDid.add(did)
}

func (a *done) add(b done) {
	a.Conns, a.Parts, a.Bytes, a.Refused, a.Seconds = a.Conns+b.Conns, a.Parts+b.Parts, a.Bytes+b.Bytes, a.Refused+b.Refused, a.Seconds+b.Seconds
	a.CPU += b.CPU
}

// add adds the results of another row to this one.
func (y *tally) add(z *tally) {
	y.flood, y.control = append(y.flood, z.flood...), append(y.control, z.control...)
	y.did.add(z.did)
	y.controlDid.add(z.controlDid)
	y.cpu, y.controlCPU, y.length = y.cpu+z.cpu, y.controlCPU+z.controlCPU, y.length+z.length
	y.memory, y.maxMemory = max(y.memory, z.memory), max(y.maxMemory, z.maxMemory)
	y.disk, y.maxDisk = y.disk+z.disk, y.maxDisk+z.maxDisk
}

// signIns and jobs return the times that were measured in each window.
func signIns(windows []served) (list [][]time.Duration) {
	for _, w := range windows {
		list = append(list, w.signIns)
	}
	return list
}

func jobs(windows []served) (list [][]time.Duration) {
	for _, w := range windows {
		list = append(list, w.jobs)
	}
	return list
}

// ratio is the 99th percentile as a multiple of that under the control, with its interval.
type ratio struct{ is, low, high float64 }

func (r ratio) String() string { return fmt.Sprintf("%.2f (%.2f-%.2f)", r.is, r.low, r.high) }

// verdict is the result of a row.
type verdict struct {
	signIns, jobs ratio
	text          string
	over, decided bool
}

func (y *tally) verdict() (v verdict) {
	v.signIns, v.jobs = ratioOf(signIns(y.flood), signIns(y.control)), ratioOf(jobs(y.flood), jobs(y.control))
	above, below, over := 0, 0, false
	for _, r := range []ratio{v.signIns, v.jobs} {
		switch {
		case r.low > slowerThanSink:
			above++
		case r.high <= slowerThanSink:
			below++
		default:
			over = over || r.is > slowerThanSink
		}
	}
	switch {
	case above > 0:
		v.text, v.over, v.decided = "above", true, true
	case below == 2:
		v.text, v.decided = "below", true
	default:
		v.text, v.over = "undecided", over
	}
	return v
}

// ratioOf compares the times in windows of a flood and of its control. The interval contains 95 % of 2,000 resamples,
// each of which draws as many windows of either kind as there are, with replacement. It draws whole windows, because
// the times within a window are not independent.
func ratioOf(flood, control [][]time.Duration) (r ratio) {
	above, below := newPool(flood), newPool(control)
	ones := func(n int) []int { return slices.Repeat([]int{1}, n) }
	r.is = above.p99(ones(len(flood))) / below.p99(ones(len(control)))
	chance := rand.New(rand.NewPCG(15, 99)) // the same windows always have the same interval
	draw := func(n int) []int {
		times := make([]int, n)
		for range n {
			times[chance.IntN(n)]++
		}
		return times
	}
	const resamples = 2000
	all := make([]float64, resamples)
	for i := range all {
		all[i] = above.p99(draw(len(flood))) / below.p99(draw(len(control)))
	}
	slices.Sort(all)
	r.low, r.high = all[resamples/40], all[resamples-1-resamples/40]
	return r
}

// pool is the samples of some windows, the longest first.
type pool struct {
	list  []sample
	sizes []int // of the windows
}

type sample struct {
	took   time.Duration
	window int
}

func newPool(windows [][]time.Duration) (p pool) {
	for i, w := range windows {
		p.sizes = append(p.sizes, len(w))
		for _, d := range w {
			p.list = append(p.list, sample{d, i})
		}
	}
	slices.SortFunc(p.list, func(a, b sample) int { return cmp.Compare(b.took, a.took) })
	return p
}

// p99 returns the 99th percentile of samples in which each window occurs the given number of times: the smallest time
// that 99 % do not exceed.
func (p pool) p99(times []int) float64 {
	total := 0
	for i, n := range times {
		total += n * p.sizes[i]
	}
	longer := total - (total*99+99)/100
	for _, s := range p.list {
		if longer -= times[s.window]; longer < 0 {
			return float64(s.took)
		}
	}
	return math.NaN() // there are no samples
}

// budgets compares memory and disk use with their limits.
func (y *tally) budgets() {
	y.memory, y.maxMemory = y.s.memory("VmHWM")-y.s.idle, y.f.budget.memory<<20
	y.maxDisk = y.f.budget.atOnce + int64(float64(y.f.budget.disk)*y.length.Seconds())
	if y.memory > y.maxMemory {
		y.s.c.breaks("%s: the master took %d MB of memory, at most %d are allowed", y.f.name, y.memory>>20, y.maxMemory>>20)
	}
	if y.disk > y.maxDisk {
		y.s.c.breaks("%s: the master wrote %d KB, at most %d are allowed", y.f.name, y.disk>>10, y.maxDisk>>10)
	}
	if y.did.Conns == 0 || y.did.Refused > y.did.Conns/2 || y.f.bytesSent() && y.did.Bytes < 1000 || y.controlDid.Bytes < y.did.Bytes*9/10 {
		y.s.c.breaks("%s: this was no flood: %+v, control %+v", y.f.name, y.did, y.controlDid)
	}
}

// bytesSent reports whether the connections of a flood send anything.
func (f flood) bytesSent() bool {
	return f.name != "silent connections" && f.name != "idle after the handshake, tcp"
}

// judgeMedians prints the row of the short form and compares its medians with the limit.
func (y *tally) judgeMedians() {
	y.print("")
	signIns := float64(median(signIns(y.flood))) / float64(median(signIns(y.control)))
	jobs := float64(median(jobs(y.flood))) / float64(median(jobs(y.control)))
	if signIns > shortBar || jobs > shortBar {
		y.s.c.breaks("%s: the median of sign-ins is %.2f times that of the control, of jobs %.2f times; at most %.2f are allowed", y.f.name, signIns, jobs, shortBar)
	}
}

func median(windows [][]time.Duration) time.Duration {
	all := slices.Sorted(slices.Values(slices.Concat(windows...)))
	return all[len(all)/2]
}

// print adds the row to the table.
func (y *tally) print(verdict string) {
	perSecond := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()/y.length.Seconds()) }
	cells := []any{y.f.name, y.did.Conns, y.did.Bytes >> 20, y.controlDid.Bytes >> 20}
	for _, of := range []func([]served) [][]time.Duration{signIns, jobs} {
		flood, control := of(y.flood), of(y.control)
		p99 := func(windows [][]time.Duration) time.Duration {
			return time.Duration(newPool(windows).p99(slices.Repeat([]int{1}, len(windows)))).Round(100 * time.Microsecond)
		}
		cells = append(cells, len(slices.Concat(flood...)), p99(flood), p99(control), ratioOf(flood, control))
	}
	y.s.c.row(append(cells, verdict, perSecond(y.cpu), perSecond(y.controlCPU),
		fmt.Sprintf("%.2f", y.did.CPU/y.did.Seconds), fmt.Sprintf("%.2f", y.controlDid.CPU/y.controlDid.Seconds),
		y.memory>>20, y.maxMemory>>20, y.disk>>10, y.maxDisk>>10)...)
}
