//go:build openstack

package interop

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/buildflags"
	"github.com/brine-salt/brine/openstack/lab"
	"github.com/brine-salt/brine/openstack/lab/original"
)

// patience is how long a test waits for something that should happen.
const patience = 4 * time.Minute

var (
	// bin is the directory of brine's programs.
	bin string
	// cloud is the lab that all tests share. Tests may kill its engine if they call keepEngine.
	cloud *lab.Lab
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run()) // names need no lab
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if bin = os.Getenv(ownNetwork); bin != "" {
		return m.Run() // one test, which has a lab of its own
	}
	dir, err := os.MkdirTemp("", "brine-openstack-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = filepath.Join(dir, "bin")
	if err := buildPrograms(); err != nil {
		log.Print(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	opts := labOptions()
	opts.Zaqar = true
	cloud, err = lab.Start(ctx, opts)
	cancel()
	if err != nil {
		log.Print(err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		fmt.Println(cloud.LogsOf("engine-*", 20000))
	}
	if err := cloud.Close(); err != nil {
		log.Print(err)
		code = 1
	}
	return code
}

// buildPrograms builds the programs for guests and engines, with the links that images have.
func buildPrograms() error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	build := func(dir string, packages ...string) error {
		args := append([]string{"build", "-o", bin}, buildflags.Release()...)
		cmd := exec.Command("go", append(args, packages...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build %s: %w\n%s", strings.Join(packages, " "), err, out)
		}
		return nil
	}
	if err := build("../..", "./cmd/brine-minion", "./cmd/brine-master"); err != nil {
		return err
	}
	programs, err := filepath.Glob("../cmd/*/main.go")
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := build("..", "./cmd/"+filepath.Base(filepath.Dir(p))); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"salt-minion": "brine-minion", "salt-call": "brine-minion", "salt": "brine-master",
		"salt-key": "brine-master", "salt-run": "brine-master"} {
		if err := os.Symlink(target, filepath.Join(bin, link)); err != nil {
			return err
		}
	}
	return nil
}

// labOptions returns the options of a lab whose engines have the plugin.
func labOptions() lab.Options {
	python, err := filepath.Abs("../python")
	if err != nil {
		panic(err)
	}
	return lab.Options{Logf: log.Printf, Brine: filepath.Join(bin, "brine-master"), Python: python}
}

// testContext returns a context that ends with the test, and before the test's time limit.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newGuest boots a guest in the shared lab that is removed at the end of the test.
func newGuest(t *testing.T, name string) *lab.Guest {
	t.Helper()
	return guestOf(t, cloud, name)
}

func guestOf(t *testing.T, l *lab.Lab, name string) *lab.Guest {
	t.Helper()
	name = strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + "-" + name
	g, err := l.StartGuest(testContext(t), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of the guest %s:\n%s", name, l.LogsOf("guest-"+name+"*", 8000))
		}
		g.Close()
	})
	return g
}

// keepEngine restarts the engine of the shared lab at the end of the test if it is dead. Call it after newStack,
// whose clean-up needs the engine.
func keepEngine(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if cloud.Engine(0) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := cloud.StartEngine(ctx, 0); err != nil {
			t.Error(err)
		}
	})
}

// newStack starts the creation of a stack of the shared lab that is deleted at the end of the test, and returns its name.
func newStack(t *testing.T, template string, args lab.StackArgs) string {
	t.Helper()
	return stackOf(t, cloud, template, args)
}

func stackOf(t *testing.T, l *lab.Lab, template string, args lab.StackArgs) string {
	t.Helper()
	name := strings.NewReplacer("/", "-").Replace(t.Name())
	if _, err := l.Heat.Create(testContext(t), name, template, args); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteStack(t, l, name) })
	return name
}

func deleteStack(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := l.Heat.Delete(ctx, name); err != nil {
		t.Errorf("cannot delete the stack %s: %v", name, err)
		return
	}
	if err := l.Heat.WaitGone(ctx, name); err != nil {
		t.Error(err)
	}
}

// waitStack waits for the end of a stack's action, and fails the test if the status is not want.
func waitStack(t *testing.T, l *lab.Lab, name, want string) *lab.Stack {
	t.Helper()
	s, err := l.Heat.Wait(testContext(t), name, want)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// originalSet returns the programs that heat-minion replaces.
func originalSet(t *testing.T) original.Set {
	t.Helper()
	s, err := original.Install(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
