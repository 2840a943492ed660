//go:build linux

// Package sealed proves that what is secret of an order is in clear text nowhere on the disk: three canaries,
// an argument, a value of the pillar and a file, are searched in everything that master, minion and database
// write, at every stage of an order's life. Master and minion are processes of their own, so that they can be
// killed. The part over a database server is tagged interop.
package sealed

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/master"
)

// patience bounds every wait.
const patience = time.Minute

// What the test binary is when a test starts it again.
const (
	envRole = "BRINE_SEALED_ROLE"
	envDir  = "BRINE_SEALED_DIR"
	envDB   = "BRINE_SEALED_STORE"
	envPort = "BRINE_SEALED_PORTS"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(envRole) {
	case "master":
		err = childMaster(os.Getenv(envDir), os.Getenv(envDB), os.Getenv(envPort))
	case "minion":
		err = childMinion(os.Getenv(envDir), os.Getenv(envPort))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// canary is something secret, and the forms in which it may stand somewhere.
type canary struct {
	name, text string
	forms      map[string][]byte
}

// newCanary makes one. It has characters that JSON and Python escape, around a core that no writer would take apart.
func newCanary(name string) canary {
	core := "canary" + name + rand.Text()
	c := canary{name: name, text: "\"<é\n" + core + "\\'ü", forms: map[string][]byte{
		"plain": []byte(core), "hex": []byte(hex.EncodeToString([]byte(core))), "HEX": []byte(strings.ToUpper(hex.EncodeToString([]byte(core))))}}
	escaped, _ := json.Marshal(c.text)
	c.forms["JSON"] = escaped[1 : len(escaped)-1]
	for shift := range 3 { // what stands at any place modulo 3, without the letters that depend on what is around
		b := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte{'x'}, shift), core...))
		first := (shift*8 + 5) / 6
		last := (shift + len(core)) * 8 / 6
		c.forms[fmt.Sprint("Base64 at ", shift)] = []byte(b[first:last])
	}
	return c
}

func (c canary) sum() string {
	s := sha256.Sum256([]byte(c.text))
	return hex.EncodeToString(s[:])
}

// TestCanaryForms: the search finds what it is to find.
func TestCanaryForms(t *testing.T) {
	c := newCanary("x")
	escaped, _ := json.Marshal(map[string]any{"a": c.text})
	for i := range 3 {
		coded := base64.StdEncoding.EncodeToString([]byte("abc"[:i] + c.text + "tail"))
		for name, b := range map[string][]byte{"plain": []byte(c.text), "JSON": escaped, "Base64": []byte(coded), "hex": fmt.Appendf(nil, "%x", c.text)} {
			if !slices.ContainsFunc([]string{"plain", "JSON", "hex", "Base64 at 0", "Base64 at 1", "Base64 at 2"}, func(f string) bool { return bytes.Contains(b, c.forms[f]) }) {
				t.Errorf("%s is not found in %q", name, b)
			}
		}
	}
}

// rig is a master and a minion in a directory.
type rig struct {
	t              *testing.T
	dir, db        string
	data           string // of the database server, "" without one
	pub, ret       int
	master, minion *exec.Cmd
	http           *http.Client
	canaries       []canary
	searched       int // files, in the last search
}

func newRig(t *testing.T, db, data string) *rig {
	r := &rig{t: t, dir: t.TempDir(), db: db, data: data}
	r.pub, r.ret = freeport.Port(t), freeport.Port(t)
	sock := filepath.Join(r.dir, "s")
	r.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", sock)
	}}}
	for _, name := range []string{"argument", "pillar", "file"} {
		r.canaries = append(r.canaries, newCanary(name))
	}
	t.Cleanup(func() {
		r.kill(&r.master)
		r.kill(&r.minion)
		if t.Failed() {
			for _, name := range []string{"master.out", "minion.out"} {
				b, _ := os.ReadFile(filepath.Join(r.dir, name))
				t.Logf("%s ends with:\n%s", name, b[max(0, len(b)-3000):])
			}
		}
	})
	return r
}

// run starts the test binary in a role.
func (r *rig) run(role string) *exec.Cmd {
	r.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envRole+"="+role, envDir+"="+r.dir, envDB+"="+r.db, fmt.Sprintf("%s=%d %d", envPort, r.pub, r.ret))
	out, err := os.OpenFile(filepath.Join(r.dir, role+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	return cmd
}

func (r *rig) startMaster() {
	r.t.Helper()
	r.master = r.run("master")
	r.await("the master answers", func() bool {
		resp, err := r.http.Get("http://m/ready")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
}

func (r *rig) startMinion() { r.minion = r.run("minion") }

// kill ends a process as a crash does.
func (r *rig) kill(p **exec.Cmd) {
	if cmd := *p; cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		*p = nil
	}
}

// await waits for what another process does.
func (r *rig) await(what string, f func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("waited in vain: ", what)
		}
	}
}

// ask asks the master's process.
func (r *rig) ask(path string, body any, out any) {
	r.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := r.http.Post("http://m/"+path, "application/json", bytes.NewReader(b))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		r.t.Fatalf("%s: %d %s %v", path, resp.StatusCode, b, err)
	}
	if err := json.Unmarshal(b, out); err != nil {
		r.t.Fatal(err)
	}
}

// place places a secret order with all three canaries.
func (r *rig) place(id, fun, tgt string, change func(*master.Order)) {
	r.t.Helper()
	arg, pillar, file := r.canaries[0].text, r.canaries[1].text, r.canaries[2].text
	o := master.Order{ID: id, Secret: true, Job: master.Job{Fun: fun, Args: []any{arg, id}, Kwargs: map[string]any{"again": arg}, Tgt: []any{tgt}, TgtType: "list"},
		Pillar: map[string]any{"canary": map[string]any{"value": pillar}, "list": []any{pillar}}, Files: map[string]string{"secret": file, "other.sls": "# " + file + "\n"}}
	if change != nil {
		change(&o)
	}
	r.ask("cast", o, &struct{}{})
}

// outcome waits for the end of an order at one minion.
func (r *rig) outcome(id, minion, want string) string {
	r.t.Helper()
	var out struct{ Status, Return, Shown string }
	r.ask("wait", map[string]any{"ID": id, "Minion": minion}, &out)
	if out.Status != want {
		r.t.Fatalf("%s: %+v, not %s", id, out, want)
	}
	if !strings.Contains(out.Shown, "sealed") {
		r.t.Errorf("%s: the job cache shows %s", id, out.Shown)
	}
	return out.Return
}

// running waits until the minion is at an order.
func (r *rig) running(id string) {
	r.t.Helper()
	r.await(id+" runs", func() bool {
		if _, err := os.Stat(filepath.Join(r.dir, "started-"+id)); err == nil {
			return true
		}
		var out struct {
			Done bool
			Text string
		}
		if r.ask("result", map[string]any{"ID": id}, &out); out.Done {
			r.t.Fatalf("%s has ended: %s", id, out.Text)
		}
		return false
	})
}

func (r *rig) goOn(id string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "go-"+id), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// clean searches all files. While the minion runs an order it has the files that it fetched.
func (r *rig) clean(stage string, running bool) {
	r.t.Helper()
	r.searched = 0
	for _, root := range []string{r.dir, r.data} {
		if root == "" {
			continue
		}
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // it is gone, or none
			}
			if running && strings.Contains(path, "/minion/cache/files/base/_order/") {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			r.searched++
			for _, c := range r.canaries {
				for form, text := range c.forms {
					if i := bytes.Index(b, text); i >= 0 {
						r.t.Errorf("%s: %s has the %s, %s: …%q…", stage, strings.TrimPrefix(path, r.dir), c.name, form, b[max(0, i-60):min(len(b), i+60)])
					}
				}
			}
			return nil
		}); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.searched < 5 {
		r.t.Errorf("%s: only %d files were searched", stage, r.searched)
	}
}

// empty tells that nothing is left of what orders carried.
func (r *rig) empty(stage string) {
	r.t.Helper()
	var left struct{ Bytes int64 }
	r.ask("left", struct{}{}, &left)
	if left.Bytes != 0 {
		r.t.Errorf("%s: orders left %d bytes", stage, left.Bytes)
	}
	if list, _ := filepath.Glob(filepath.Join(r.dir, "minion/cache/files/base/_order/*")); len(list) > 0 {
		r.t.Errorf("%s: the minion has %v", stage, list)
	}
}

// all goes through the whole life. durable says that the store survives the master.
func (r *rig) all(durable bool) {
	t := r.t
	seen := r.canaries[0].sum() + r.canaries[1].sum() + r.canaries[2].sum()
	r.startMaster()
	r.place("returned", "canary.wait", "m", nil)
	r.clean("while it waits", false)
	if durable {
		r.kill(&r.master)
		r.clean("after the master was killed while it waits", false)
		r.startMaster()
	}
	r.startMinion()
	r.running("returned")
	r.clean("while it runs", true)
	var found struct{ Text string }
	r.ask("running", map[string]any{"Minion": "m"}, &found) // the answer goes through the job cache
	if !strings.Contains(found.Text, "sealed") {
		t.Errorf("saltutil.running tells %s", found.Text)
	}
	if durable {
		r.kill(&r.master)
		r.clean("after the master was killed while it runs", true)
		r.startMaster()
	}
	r.goOn("returned")
	if got := r.outcome("returned", "m", "returned"); got != seen {
		t.Errorf("the minion saw %s, not %s", got, seen)
	}
	r.clean("returned", false)
	r.empty("returned")

	r.place("undeliverable", "canary.quick", "absent", func(o *master.Order) { o.TTL = 50 * time.Millisecond })
	r.outcome("undeliverable", "absent", "undeliverable")
	r.place("cancelled", "canary.wait", "m", nil)
	r.running("cancelled")
	r.ask("cancel", map[string]any{"ID": "cancelled"}, &struct{}{})
	r.outcome("cancelled", "m", "cancelled")
	r.place("timed-out", "canary.wait", "m", func(o *master.Order) { o.Deadline = time.Now().Add(2 * time.Second) })
	r.running("timed-out")
	r.outcome("timed-out", "m", "timed out")
	r.place("refused", "canary.refused", "m", nil)
	r.outcome("refused", "m", "refused")
	r.place("failed", "canary.fail", "m", nil)
	if got := r.outcome("failed", "m", "returned"); !strings.Contains(got, "canary.fail") {
		t.Error(got)
	}
	r.place("interrupted", "canary.wait", "m", nil)
	r.running("interrupted")
	r.kill(&r.minion)
	r.clean("after the minion was killed while it runs", true)
	r.startMinion()
	if got := r.outcome("interrupted", "m", "returned"); !strings.Contains(got, "interrupted") {
		t.Error(got)
	}
	r.place("lost", "canary.wait", "m", nil)
	r.running("lost")
	r.kill(&r.minion)
	r.outcome("lost", "m", "lost")
	r.startMinion()
	r.place("last", "canary.quick", "m", nil)
	r.outcome("last", "m", "returned")
	r.await("the minion's spool is empty", func() bool {
		list, _ := filepath.Glob(filepath.Join(r.dir, "minion/cache/return_spool/*"))
		return !slices.ContainsFunc(list, func(f string) bool { return !strings.Contains(filepath.Base(f), "lock") })
	})
	r.clean("after all six outcomes", false)
	r.empty("after all six outcomes")
}

func TestSealedInSQLite(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sqlite", "")
	r.all(true)
}

func TestSealedInMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, "memory", "")
	r.all(false)
}
