package hadoop

import (
	"context"
	"os"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/cmdmod"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestProgram checks that hdfs is used where it is installed, and hadoop otherwise.
func TestProgram(t *testing.T) {
	t.Setenv("PATH", "/opt")
	e := modulestest.Env(t)
	for _, dir := range []string{"/opt", "/bin"} {
		if err := os.Mkdir(e.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if ok, why := available(e); ok || why != "The hadoop execution module cannot be loaded: hadoop or hdfs binary not in path." {
		t.Errorf("without programs: %v, %q", ok, why)
	}
	if err := os.WriteFile(e.Path("/bin/sh"), nil, 0o755); err != nil { // cmd wants a shell, whether it uses it or not
		t.Fatal(err)
	}
	started := ""
	e.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		started = c.Args[0]
		return modules.CommandResult{Stdout: []byte("Hadoop 3.3.6\n")}, nil
	})
	for _, program := range []string{"hadoop", "hdfs"} {
		if err := os.WriteFile(e.Path("/opt/"+program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
		got := modules.NewRegistry(Module, cmdmod.Module).Run(t.Context(), e, modules.Request{Fun: "hadoop.version"})
		if got.Err != nil || got.Return != "3.3.6" || started != program {
			t.Errorf("with %s: %+v, started %s", program, got, started)
		}
	}
}
