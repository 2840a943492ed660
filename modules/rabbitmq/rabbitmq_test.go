package rabbitmq

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// server is a host with rabbitmqctl, which run plays.
func server(t *testing.T, run func(args []string) (modules.CommandResult, error)) *modules.Env {
	t.Helper()
	t.Setenv("PATH", "/usr/sbin")
	e := modulestest.Env(t)
	path := e.Path("/usr/sbin/rabbitmqctl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	e.Runner = modulestest.Runner(func(_ context.Context, cmd modules.Command) (modules.CommandResult, error) { return run(cmd.Args) })
	return e
}

// A program that cannot be started is an error, which shows the arguments, but no password.
func TestPasswordsStayOutOfErrors(t *testing.T) {
	e := server(t, func(args []string) (modules.CommandResult, error) {
		if args[1] == "status" {
			return modules.CommandResult{Stdout: []byte("RabbitMQ version: 3.8.2")}, nil
		}
		return modules.CommandResult{}, &fs.PathError{Op: "fork/exec", Path: args[0], Err: syscall.EACCES}
	})
	for _, fun := range []string{"add_user", "change_password", "check_password"} {
		res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "rabbitmq." + fun, Args: []any{"ada", "hunter2"}})
		if res.Err == nil || strings.Contains(res.Err.Error(), "hunter2") || !strings.Contains(res.Err.Error(), "REDACTED") {
			t.Errorf("%s: %v", fun, res.Err)
		}
	}
}

// A password for an old server is a text in a program, and stays one.
func TestPasswordsAreNoPrograms(t *testing.T) {
	got := ""
	e := server(t, func(args []string) (modules.CommandResult, error) {
		if args[1] == "eval" {
			got = args[2]
		}
		return modules.CommandResult{}, nil
	})
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "rabbitmq.check_password", Args: []any{"a\"b", `x\">>}]), halt(). %`}})
	if want := `rabbit_auth_backend_internal:check_user_login(<<"a\"b">>, [{password, <<"x\\\">>}]), halt(). %">>}]).`; got != want || res.Err != nil {
		t.Errorf("%s, %v", got, res.Err)
	}
}

// A user whom the server did not add keeps the password; the one whose new password cannot be taken away does not stay.
func TestAddUserWithoutPassword(t *testing.T) {
	for _, x := range []struct {
		name, failing string
		want          string
	}{
		{"added", "", "add_user clear_password"},
		{"there already", "add_user", "add_user"},
		{"not cleared", "clear_password", "add_user clear_password delete_user"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var ran []string
			e := server(t, func(args []string) (modules.CommandResult, error) {
				ran = append(ran, args[1])
				if args[1] == x.failing {
					return modules.CommandResult{ExitCode: 70, Stderr: []byte("no")}, nil
				}
				return modules.CommandResult{}, nil
			})
			res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "rabbitmq.add_user", Args: []any{"ada"}})
			if got := strings.Join(ran, " "); got != x.want {
				t.Errorf("ran %s", got)
			}
			if (res.Err == nil) != (x.failing == "") {
				t.Errorf("the error is %v", res.Err)
			}
		})
	}
}
