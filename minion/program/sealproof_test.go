//go:build linux

package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/confine"
	"github.com/brine-salt/brine/internal/testkit/gobuild"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/config"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/modules/returners/all"
	_ "github.com/brine-salt/brine/states/all"
)

// proofEnv is the environment variable that makes the test program run as the sealed minion of the proof.
const proofEnv = "BRINE_SEAL_PROOF_CHILD"

// proof says what the child does.
type proof struct {
	Dir      string
	Requests int
	Seed     uint64
	Sealed   bool
	// Only lists the modules to call; if it is empty all are called.
	Only []string
	// Listen makes the minion listen to its master until standard input ends.
	Listen bool
	// Calls are made one after another, instead of random ones, after a line on standard input.
	Calls []bypassCall
}

// sealedNow is the first line that a listening child prints, callsMade its line after its own calls.
const sealedNow, callsMade = "sealed", "calls made"

// tally is the result of a proof. Fewest is the lowest number of calls of any function. Bound counts the requests
// whose arguments fit their function, whether or not a seal refuses it.
type tally struct {
	Functions, Fewest, Bound, Refused, Returned, Failed, Late int
	Kernel                                                    string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(proofEnv); text != "" {
		if err := proofChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			if errors.Is(err, confine.ErrUnsupported) {
				os.Exit(3)
			}
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// proofChild calls functions with random arguments.
func proofChild(text string) error {
	var p proof
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	conf := filepath.Join(p.Dir, "etc/minion")
	opts, err := config.Load(conf, nil)
	if err != nil {
		return err
	}
	opts["conf_file"] = conf
	log := slog.New(slog.DiscardHandler)
	var seal *policy.Seal
	if p.Sealed {
		if seal, err = policy.LoadSeal(filepath.Join(p.Dir, "etc/seal.yaml")); err != nil {
			return err
		}
	}
	o, err := standard.SealedOptions(opts, log, seal)
	if err != nil {
		return err
	}
	out := tally{Kernel: confine.Support()}
	o.Restrict = restrictor(seal, opts, log, slog.LevelWarn, confine.Apply)
	m, err := minion.New(o)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := m.Call(ctx, minion.CallOptions{Fun: "test.ping", Local: true, NoReturnEvent: true}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	listening, stop := context.WithCancel(ctx)
	in := bufio.NewReader(os.Stdin)
	if p.Listen {
		go func() { ended <- m.Run(listening) }()
		fmt.Println(sealedNow)
	} else {
		ended <- nil
	}
	if len(p.Calls) > 0 {
		_, _ = in.ReadString('\n')
	}
	for _, c := range p.Calls {
		call, cancel := context.WithTimeout(ctx, requestTime)
		_, _ = m.Call(call, minion.CallOptions{Fun: c.Fun, Kwargs: c.Kwargs, Local: true, NoReturnEvent: true})
		cancel()
	}
	if len(p.Calls) > 0 {
		fmt.Println(callsMade)
	}
	go func() { _, _ = io.Copy(io.Discard, in); stop() }()
	funs, defs := proofFunctions(p.Only)
	out.Functions = len(funs)
	calls := make([]atomic.Int64, len(funs))
	var bound, refused, returned, failed, late, next atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(p.Seed, uint64(worker)))
			for {
				i := int(next.Add(1)) - 1
				if i >= p.Requests {
					return
				}
				fun := funs[i%len(funs)] // all equally often
				args, kwargs := invent(r, defs[fun], p.Dir)
				if _, err := new(modules.Call).Foreign(&modules.Env{}, nil, defs[fun], fun, args, kwargs); err == nil {
					bound.Add(1)
				}
				calls[i%len(funs)].Add(1)
				call, cancel := context.WithTimeout(ctx, time.Second)
				done := make(chan modules.Result, 1)
				go func() {
					res, err := m.Call(call, minion.CallOptions{Fun: fun, Args: args, Kwargs: kwargs, Local: true, NoReturnEvent: true, ForMaster: i%2 == 0})
					if err != nil {
						res.Err = err
					}
					done <- res
				}()
				select {
				case res := <-done:
					switch {
					case modules.IsRefused(res.Err):
						refused.Add(1)
					case res.Err != nil:
						failed.Add(1)
					default:
						returned.Add(1)
					}
				case <-time.After(3 * time.Second):
					late.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	out.Fewest = p.Requests
	for i := range calls {
		out.Fewest = min(out.Fewest, int(calls[i].Load()))
	}
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	out.Bound, out.Refused, out.Returned, out.Failed, out.Late = int(bound.Load()), int(refused.Load()), int(returned.Load()), int(failed.Load()), int(late.Load())
	return json.NewEncoder(os.Stdout).Encode(out)
}

// invent returns random arguments that fit a function. Many are paths of files and programs.
func invent(r *rand.Rand, d *modules.Def, dir string) ([]any, map[string]any) {
	out, in := filepath.Join(dir, "outside", strconv.Itoa(r.IntN(50))), filepath.Join(dir, "write", strconv.Itoa(r.IntN(50)))
	texts := []string{out, out, out, in, "file://" + out, filepath.Join(dir, "outside"), filepath.Join(dir, "etc/seal.yaml"), filepath.Join(dir, "pki/minion.pem"),
		in + "/../../outside/x", "touch " + out, "/bin/sh -c 'touch " + out + "'", "/bin/sh", "x", "{{ salt['cmd.run']('touch " + out + "') }}", "cmd.run", "file.touch",
		"x:\n  cmd.run:\n    - name: touch " + out + "\n", "x:\n  file.touch:\n    - name: " + out + "\n", "base", ""}
	var value func(t modules.Type, depth int) any
	value = func(t modules.Type, depth int) any {
		switch {
		case t == modules.Int:
			return int64(r.IntN(5))
		case t == modules.Float:
			return r.Float64()
		case t == modules.Bool:
			return r.IntN(2) == 0
		case t == modules.List || t == modules.Any && depth > 0 && r.IntN(8) == 0:
			return []any{value(modules.String, 0), value(modules.Any, depth-1)}
		case t == modules.Map || t == modules.Any && depth > 0 && r.IntN(8) == 0:
			return map[string]any{texts[r.IntN(len(texts))]: value(modules.Any, depth-1), "name": out, "cmd": "touch " + out}
		case t == modules.Any && r.IntN(12) == 0:
			return []any{nil, true, int64(7)}[r.IntN(3)]
		}
		return texts[r.IntN(len(texts))]
	}
	kwargs := map[string]any{}
	for _, p := range d.Params {
		if p.Required() || r.IntN(4) == 0 {
			kwargs[p.Name] = value(p.Type, 2)
		}
	}
	return nil, kwargs
}

// auditChild runs the child under strace, in its own namespaces, and returns the programs that were started and the
// files that were changed outside of the permitted trees. A listening child runs while meanwhile does, and makes its own
// calls after that: two requests at the same time would disturb each other (dpkg's lock, the file of the grains).
func auditChild(t *testing.T, p proof, meanwhile func()) (out tally, programs, files []string) {
	t.Helper()
	for _, tool := range []string{"strace", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			prereq.Missing(t, tool)
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	// The processes of the test cannot be reached from the new namespace, whatever the functions do.
	trace := filepath.Join(t.TempDir(), "trace")
	const calls = "execve,execveat,?open,openat,?openat2,?creat,truncate,ftruncate,?rename,renameat,renameat2,?link,linkat,?symlink,symlinkat,?unlink,unlinkat,?mkdir,mkdirat,?rmdir,?mknod,mknodat"
	cmd := exec.CommandContext(t.Context(), "unshare", "--fork", "--pid", "--mount-proc", "strace", "-f", "--seccomp-bpf", "-qq", "-z", "-y", "-s", "300", "-e", "signal=none", "-e", "trace="+calls, "-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), proofEnv+"="+string(text), "HOME="+p.Dir+"/write", "TMPDIR="+p.Dir+"/write")
	cmd.Dir = filepath.Join(p.Dir, "write")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(pipe)
	if p.Listen {
		// A child that the kernel cannot seal ends before this line.
		if line, err := said.ReadString('\n'); err == nil && line == sealedNow+"\n" {
			meanwhile()
			if len(p.Calls) > 0 {
				_, _ = io.WriteString(stdin, "\n")
				if line, err := said.ReadString('\n'); err != nil || line != callsMade+"\n" {
					t.Errorf("the child says %q, %v", line, err)
				}
				time.Sleep(5 * time.Second) // for the effects of schedules, beacons and reactions
			}
		}
	}
	_ = stdin.Close()
	stdout, err := io.ReadAll(said)
	if err != nil {
		t.Error(err)
	}
	err = cmd.Wait()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 3 {
		if strings.Contains(errs.String(), "built with cgo") { // the race detector's programs are; make test-again runs it without
			t.Skip(errs.String())
		}
		prereq.Missing(t, errs.String())
	}
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if err := json.Unmarshal(stdout, &out); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	first := true // the first execve is strace starting the child
	for lines.Scan() {
		_, line, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		line = strings.TrimSpace(line)
		name, rest, _ := strings.Cut(line, "(")
		switch {
		case name == "execve" || name == "execveat":
			if !first {
				programs = append(programs, line)
			}
			first = false
		case strings.HasPrefix(name, "open") && !strings.Contains(rest, "O_WRONLY") && !strings.Contains(rest, "O_RDWR") && !strings.Contains(rest, "O_CREAT") &&
			!strings.Contains(rest, "O_TRUNC"):
		case name == "syscall_0x1c4": // fchmodat2, unknown to old versions of strace; a seal does not protect modes
		case p.inTrees(line):
		default:
			files = append(files, line)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out, programs, files
}

// inTrees reports whether all paths in a line of strace are in the trees that may be written.
func (p proof) inTrees(line string) bool {
	found, base := false, filepath.Join(p.Dir, "write")
	if strings.HasPrefix(line, "symlink") { // the target of the link is not a path that changes
		_, line, _ = strings.Cut(line, `", `)
	}
	for rest := line; ; {
		i := strings.IndexAny(rest, `"<`)
		if i < 0 {
			return found
		}
		end := strings.IndexAny(rest[i+1:], `">`)
		if end < 0 {
			return found
		}
		path := rest[i+1 : i+1+end]
		relative := rest[i] == '"' && !strings.HasPrefix(path, "/") // to the preceding directory
		working := strings.HasSuffix(rest[:i], "AT_FDCWD")
		rest = rest[i+end+2:]
		if relative {
			path = filepath.Join(base, path)
		} else if working {
			base = path
			continue
		}
		found = true
		ok := strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "pipe:") || strings.HasPrefix(path, "anon_inode:")
		for _, tree := range []string{"write", "cache", "run", "log"} {
			ok = ok || strings.HasPrefix(filepath.Clean(path)+"/", filepath.Join(p.Dir, tree)+"/")
		}
		if !ok {
			return false
		}
	}
}

// hostFiles are the files outside of the proof's directory that its arguments name.
var hostFiles = []string{"/bin/sh", "/bin/sh.bak", "/bin"}

// stateOf returns the state of files and directories: link targets, sizes, modes and change times.
func stateOf(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, path := range paths {
		real, _ := filepath.EvalSymlinks(path)
		states[path] = real
		if info, err := os.Stat(path); err == nil {
			states[path] += fmt.Sprintf(" %d %v %v", info.Size(), info.Mode(), info.ModTime())
		}
	}
	return states
}

func proofHost(t *testing.T, seal string) string {
	t.Helper()
	dir, _ := sealedHost(t, "")
	for _, d := range []string{"write", "outside"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil { //nolint:gosec // as on hosts
			t.Fatal(err)
		}
	}
	for i := range 50 {
		if err := os.WriteFile(filepath.Join(dir, "outside", strconv.Itoa(i)), []byte("kept\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/seal.yaml"), []byte(strings.ReplaceAll(seal, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writers are modules that handle files and programs.
var writers = []string{"aliases", "archive", "at", "cmdmod", "cpmod", "cron", "environ", "file", "gem", "git", "grainsmod", "hosts", "ini_manage", "jinja", "linux_acl",
	"npm", "pip", "slsutil", "state"}

// TestSealProof calls the functions of writers with random arguments, in a minion whose seal permits all functions,
// so that the kernel alone protects the trees and the programs. It also calls every function of the program with the
// profile observe. strace shows what was started and changed. One more request per hundred comes from a real master,
// signed and encrypted. Without a seal the same calls start programs and change files. BRINE_SEAL_PROOF is the number
// of requests (make seal-proof: 1,000,000).
//
// The calls change the machine: without a seal, file.blockreplace writes to /bin/sh. So everything runs on a private
// host.
func TestSealProof(t *testing.T) {
	prereq.Root(t) // only root's seals count, and only root has namespaces for them
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	if !privatehost.Inside() {
		program := filepath.Join(t.TempDir(), "brine-master")
		if err := gobuild.Build("", program, "../../cmd/brine-master"); err != nil {
			t.Fatal(err)
		}
		t.Setenv(proofMaster, program)
		before := stateOf(t, hostFiles...)
		privatehost.Enter(t, "-test.run=^TestSealProof$")
		if diff := cmp.Diff(before, stateOf(t, hostFiles...)); diff != "" {
			t.Errorf("the machine has changed (-before +now):\n%s", diff)
		}
		return
	}
	host := privatehost.New(t)
	host.Fresh(t)
	defer host.Undo(t)
	n := 2000
	if text := os.Getenv("BRINE_SEAL_PROOF"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	observe, err := os.ReadFile(filepath.Join(pkgDir, "seal/observe.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const allowed = "/bin/true"
	signed := 0
	for _, c := range []struct {
		name, seal string
		only       []string
	}{
		{"the kernel alone", "functions: ['*']\nstates: ['*']\nprograms: [" + allowed + "]\nread: [DIR/outside]\nwrite: [DIR/write]\n", writers},
		{"observe", string(observe), nil},
	} {
		dir := proofHost(t, c.seal)
		m := startPublisher(t, dir)
		funs, defs := proofFunctions(c.only)
		published := n / 2 / 100
		got, programs, files := auditChild(t, proof{Dir: dir, Requests: n / 2, Seed: seed, Sealed: true, Only: c.only, Listen: true}, func() {
			answered, refused := m.publish(t, published, seed, funs, defs, dir)
			t.Logf("%s: %d requests were published, %d answered, %d of them refused", c.name, published, answered, refused)
			if answered != int64(published) || c.name == "observe" && refused == 0 {
				t.Errorf("%s: %d of %d published requests were answered, %d refused", c.name, answered, published, refused)
			}
		})
		t.Logf("%s: seed %d, %d requests: %+v", c.name, seed, n/2, got)
		for _, line := range programs {
			if !strings.HasPrefix(line, `execve("`+allowed+`"`) || c.name == "observe" {
				t.Errorf("%s: a program was started: %s", c.name, line)
			}
		}
		for _, line := range files {
			t.Errorf("%s: a file was changed: %s", c.name, line)
		}
		for i := range 50 {
			if text, err := os.ReadFile(filepath.Join(dir, "outside", strconv.Itoa(i))); err != nil || string(text) != "kept\n" {
				t.Errorf("%s: a file outside of the trees: %q, %v", c.name, text, err)
			}
		}
		if got.Bound*2 < n/2 {
			t.Errorf("%s: %d of %d requests passed the check of their arguments", c.name, got.Bound, n/2)
		}
		if least := 100 * n / 1_000_000; got.Fewest < least {
			t.Errorf("%s: a function was called %d times, not %d", c.name, got.Fewest, least)
		}
		if made := got.Refused + got.Returned + got.Failed + got.Late; made != n/2 || got.Late*100 > made {
			t.Errorf("%s: %d of %d requests were made, %d of them did not end", c.name, made, n/2, got.Late)
		}
		signed += published
	}
	if signed < n/100 {
		t.Errorf("%d signed requests came from a master, not %d", signed, n/100)
	}
	dir := proofHost(t, "functions: []\n")
	got, programs, files := auditChild(t, proof{Dir: dir, Requests: 300, Seed: seed, Only: []string{"cmdmod", "file"}}, nil)
	if len(programs) == 0 || len(files) == 0 {
		t.Errorf("without a seal nothing happens, so that the test shows nothing: %d programs, %d files, %+v", len(programs), len(files), got)
	}
	t.Logf("without a seal 300 requests started %d programs and changed files %d times", len(programs), len(files))
}
