//go:build packages

package packages

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// readImage parses an archive as "docker save" writes it. It returns the configuration of the image, and the files of
// all layers.
func readImage(t *testing.T, name string) (config map[string]any, files map[string]*tar.Header) {
	t.Helper()
	members := map[string][]byte{}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files = map[string]*tar.Header{}
	each(t, f, func(h *tar.Header, r io.Reader) {
		if strings.HasSuffix(h.Name, ".json") {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			members[h.Name] = b
		} else if strings.HasSuffix(h.Name, ".tar") && h.Typeflag == tar.TypeReg {
			each(t, r, func(h *tar.Header, _ io.Reader) { files["/"+strings.Trim(h.Name, "./")] = h })
		}
	})
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	if err := json.Unmarshal(members["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("the manifest is %s (%v)", members["manifest.json"], err)
	}
	if d := cmp.Diff([]string{"localhost/brine:latest"}, manifest[0].RepoTags); d != "" {
		t.Error(d)
	}
	var image struct{ Config map[string]any }
	if err := json.Unmarshal(members[manifest[0].Config], &image); err != nil {
		t.Fatal(err)
	}
	return image.Config, files
}

// each calls f with every member of a tar archive.
func each(t *testing.T, r io.Reader, f func(*tar.Header, io.Reader)) {
	t.Helper()
	for a := tar.NewReader(r); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f(h, a)
	}
}

// TestContainerImage: the image has two programs and no shell, starts the master as an unprivileged user, and only
// that user can access what it writes.
func TestContainerImage(t *testing.T) {
	config, files := readImage(t, builtBelow(t, "container/brine.tar"))
	for key, want := range map[string]any{"User": "10001:10001", "Entrypoint": []any{"/usr/bin/brine-master"}, "Cmd": []any{"master", "-l", "info"}} {
		if d := cmp.Diff(want, config[key]); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
	programs := 0
	for name, h := range files {
		if h.Typeflag == tar.TypeReg && h.Mode&0o111 != 0 {
			programs++
		}
		theirs := h.Uid == 10001
		written := false
		for _, dir := range []string{"/etc/salt/pki", "/var/cache/salt", "/var/run/salt", "/var/log/salt", "/tmp"} {
			written = written || name == dir || strings.HasPrefix(name, dir+"/")
		}
		if theirs != written || h.Uid != h.Gid || h.Mode&0o022 != 0 {
			t.Errorf("%s belongs to %d:%d with mode %o", name, h.Uid, h.Gid, h.Mode)
		}
	}
	if programs != 2 || files["/usr/bin/brine-master"] == nil || files["/usr/bin/brine-minion"] == nil {
		t.Errorf("there are %d programs among %d files", programs, len(files))
	}
	if h := files["/etc/salt/pki"]; h == nil || h.Mode&0o777 != 0o700 {
		t.Errorf("the directory of the keys is %+v", h)
	}
}

// builtBelow returns the architecture for which the files below bin were built.
func builtBelow(t *testing.T, name string) string { return built(t, "../"+name) }

// postgresEntrypoint does with the variables what the PostgreSQL image in the compose file does.
const postgresEntrypoint = `#!/bin/sh
set -e
data=/var/lib/postgresql/data
if [ ! -e $data/PG_VERSION ]; then
	printf '%s' "$POSTGRES_PASSWORD" >/tmp/password
	initdb -D $data -U "$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 --locale=C.UTF-8 --encoding=UTF8 >&2
	echo 'host all all all scram-sha-256' >>$data/pg_hba.conf
	[ "$POSTGRES_DB" = "$POSTGRES_USER" ] || exit 1
	echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D $data postgres >&2
fi
exec postgres -D $data -c listen_addresses='*' -c unix_socket_directories=/tmp,/var/run/postgresql
`

// TestComposeStarted starts the compose file as docs/install.md says, on its own Docker: two minions sign in at the
// master, whose keys and jobs are in PostgreSQL, and answer, also after everything is started again. There is no
// registry: the image of PostgreSQL is built from the one on this host.
func TestComposeStarted(t *testing.T) {
	prereq.Root(t)
	tools(t, "docker-compose", "iptables")
	socket := testserver.Docker(t)
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	output(t, "docker", "load", "--input", builtBelow(t, "container/brine.tar"))
	postgres := filepath.Dir(filepath.Dir(testserver.Program(t, "postgres")))
	testserver.Image{Tag: "postgres:17", Programs: []string{"postgres", "initdb", "pg_isready"}, User: "70", Entrypoint: postgresEntrypoint,
		Reads:  postgres + "/lib /usr/share/postgresql/" + filepath.Base(postgres) + " /usr/share/zoneinfo/Etc /usr/lib/locale/C.utf8",
		Writes: "/var/lib/postgresql/data /var/run/postgresql"}.Import(t, socket)

	project := filepath.Join(t.TempDir(), "brine")
	output(t, "cp", "-r", "../../../pkg/container", project)
	block := page(t, "install.md", "cd pkg/container\n")
	_, commands, _ := strings.Cut(block, "\n")
	key, _, found := strings.Cut(commands, "docker compose up")
	if !found {
		t.Fatalf("docs/install.md starts nothing: %s", block)
	}
	output(t, "sh", "-ec", `cd "$0" && `+key, project)
	compose := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "docker-compose", args...)
		cmd.Dir = project
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("docker-compose %s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.String())
		}
		return string(out), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := compose(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	must("config", "--quiet")
	must("up", "--detach")
	t.Cleanup(func() {
		if t.Failed() {
			out, err := exec.Command("docker-compose", "--project-directory", project, "-f", project+"/compose.yaml", "logs", "--tail=30").CombinedOutput()
			t.Logf("%s %v", out, err)
		}
		if out, err := exec.Command("docker-compose", "--project-directory", project, "-f", project+"/compose.yaml", "down", "--volumes", "--timeout=10").CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	await(t, "the keys of both minions", func() error {
		out, err := compose("exec", "-T", "master", "brine-master", "key", "--out=json", "-l", "un")
		if err == nil && (!strings.Contains(out, `"minion1"`) || !strings.Contains(out, `"minion2"`)) {
			err = fmt.Errorf("the keys are %s", out)
		}
		return err
	})
	must("exec", "-T", "master", "brine-master", "key", "-A", "-y")
	both := func() error {
		out, err := compose("exec", "-T", "master", "brine-master", "salt", "--out=json", "--static", "*", "test.ping")
		if err != nil {
			return err
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if d := cmp.Diff(map[string]any{"minion1": true, "minion2": true}, got); d != "" {
			return errors.New(d)
		}
		return nil
	}
	await(t, "both minions", both)
	if out := output(t, "docker", "inspect", "--format={{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}",
		strings.TrimSpace(must("ps", "-q", "master"))); out != "10001:10001 true [ALL]\n" {
		t.Errorf("the master's container is %q", out)
	}
	// Keys and jobs survive new containers.
	must("down", "--timeout=10")
	must("up", "--detach")
	await(t, "both minions after a restart", both)
	if out := must("exec", "-T", "master", "brine-master", "run", "--out=json", "jobs.list_jobs"); strings.Count(out, `"test.ping"`) < 2 {
		t.Errorf("the jobs are %s", out)
	}
}
