//go:build openstack

package trove

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/modules"
)

// newContainers prepares an instance whose server runs in a container: it starts a Docker daemon with an image of a
// database. The first program is the server.
func newContainers(t *testing.T, image, owner, dirs string, programs ...string) (options map[string]any, docker func(args ...string) string) {
	t.Helper()
	socket := testserver.Docker(t)
	// As in the images that Trove uses, the container's arguments are the server's arguments.
	testserver.Image{Tag: image, Programs: programs, Reads: dirs, Entrypoint: "#!/bin/sh\ncase \"${1:--}\" in -*) exec " + programs[0] +
		" \"$@\" ;; esac\nexec \"$@\"\n"}.Import(t, socket)
	u, err := user.Lookup(owner)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(image, ":")
	docker = func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "docker", append([]string{"--host=unix://" + socket}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("docker %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("containers:\n%s", docker("ps", "--all"))
			if docker("ps", "--all", "--quiet", "--filter=name=^/database$") != "" {
				t.Logf("the server said\n%s", docker("logs", "--tail=30", "database"))
			}
		}
	})
	return map[string]any{"way": "container", "docker_socket": socket, "docker_image": name, "database_service_uid": u.Uid, "service": "none"}, docker
}

// replayVersions are the tags of the replay's images, by datastore: the version at first, and the one to upgrade to.
var replayVersions = map[string][2]string{managerMaria: {"10.11", "10.12"}, managerPostgres: {"15", "16"}}

// loadReplayImages imports the image of a datastore into a Docker daemon and pushes it to the daemon's registry, since Trove removes all
// images without a container before an upgrade. It returns the image's name without its tags, and the user of its server.
func loadReplayImages(t *testing.T, socket, datastore string) (name, uid string) {
	t.Helper()
	entrypoint, err := os.ReadFile("testdata/entrypoint.sh")
	if err != nil {
		t.Fatal(err)
	}
	owner, image := "mysql", testserver.Image{Entrypoint: string(entrypoint), Reads: "/usr/share/mysql /usr/lib/mysql/plugin",
		Programs: []string{"mariadbd", "mariadb-install-db", "my_print_defaults", "resolveip", "mariabackup", "mbstream", "mysqladmin"}}
	if datastore == managerPostgres {
		dir := filepath.Dir(filepath.Dir(testserver.Program(t, "postgres")))
		owner = "postgres"
		image.Reads = dir + "/lib /usr/share/postgresql/" + filepath.Base(dir) + " /usr/share/zoneinfo/Etc /usr/lib/locale/C.utf8"
		image.Programs = []string{"postgres", "initdb", "pg_ctl", "pg_basebackup", "pg_rewind", "psql", "pg_isready"}
	}
	u, err := user.Lookup(owner)
	if err != nil {
		t.Fatal(err)
	}
	name = "127.0.0.1:5000/" + datastore
	image.User, image.Tag = u.Uid, name+":backup"
	image.Import(t, socket)
	for _, args := range [][]string{{"tag", image.Tag, name + ":" + replayVersions[datastore][0]}, {"tag", image.Tag, name + ":" + replayVersions[datastore][1]},
		{"push", "--quiet", "--all-tags", name}} {
		out, err := exec.CommandContext(t.Context(), "docker", append([]string{"--host=unix://" + socket}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("docker %v: %v\n%s", args, err, out)
		}
	}
	return name, u.Uid
}

// A containerCase is a database that runs in containers.
type containerCase struct {
	image, newer string
	owner, dirs  string
	programs     []string
	open         func(*testing.T, map[string]any) *instance
	config       func(*instance) string
	query        func(i *instance, statement string) string
	as           func(i *instance, user, password string) string
}

// asMaria logs in through the socket, since these containers have their own network.
func asMaria(i *instance, name, password string) string {
	cmd := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "mariadb"), "--no-defaults", "--socket="+i.dir+"/s", "-u", name, "-N", "-B", "-e", "SELECT CURRENT_USER()")
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+password)
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}

func asPostgres(i *instance, name, password string) string {
	cmd := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "psql"), "-h", i.dir, "-p", i.port, "-U", name, "-d", "web", "-w", "-q", "-A", "-t", "-c", "SELECT current_user")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}

// TestTroveContainers runs instances with the container method in a real Docker: the life cycle of an instance,
// backups, the restore to an empty instance, an upgrade to another image, and a cancelled program.
func TestTroveContainers(t *testing.T) {
	postgres := filepath.Dir(filepath.Dir(testserver.Program(t, "postgres")))
	version := filepath.Base(postgres)
	for name, c := range map[string]containerCase{
		"mariadb": {image: "maria:10.11", newer: "maria:10.12", owner: "mysql", dirs: "/usr/share/mysql /usr/lib/mysql/plugin", open: newInstance,
			programs: []string{"mariadbd", "mariadb-install-db", "my_print_defaults", "resolveip", "mariabackup", "mbstream"},
			config:   (*instance).config, query: func(i *instance, s string) string { return i.query("USE web; " + s) }, as: asMaria},
		"postgresql": {image: "pg:" + version, newer: "pg:newer", owner: "postgres",
			dirs: postgres + "/lib /usr/share/postgresql/" + version + " /usr/share/zoneinfo/Etc /usr/lib/locale/C.utf8", open: newPostgres,
			programs: []string{"postgres", "initdb", "pg_ctl", "pg_basebackup", "pg_rewind"},
			config:   (*instance).postgresConfig, query: func(i *instance, s string) string { return i.psql("web", s) }, as: asPostgres},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

func (c containerCase) prepare(i *instance, more string) {
	i.t.Helper()
	_, version, _ := strings.Cut(c.image, ":")
	i.must("prepare", `{"memory_mb": 512, "packages": [], "ds_version": "`+version+`", "config_contents": `+quoteJSON(c.config(i))+more+`}`)
}

func (c containerCase) run(t *testing.T) {
	options, docker := newContainers(t, c.image, c.owner, c.dirs, c.programs...)
	a := c.open(t, options)
	c.prepare(a, `, "databases": [{"_name": "web"}], "users": [{"_name": "ada", "_password": "adasecret1", "_databases": [{"_name": "web"}]}]`)
	if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat building", "salt/beacon/inst-1/trove/heartbeat healthy"}, a.seen()); diff != "" {
		t.Error(diff)
	}
	uid := options["database_service_uid"].(string)
	inspect := func() string {
		return docker("container", "inspect", "--format={{.Config.Image}} {{.Config.User}} {{.HostConfig.NetworkMode}} {{.HostConfig.RestartPolicy.Name}} {{.HostConfig.Privileged}} {{.State.Status}}", "database")
	}
	if got, want := inspect(), c.image+" "+uid+":"+uid+" host unless-stopped false running"; got != want {
		t.Errorf("the server's container is %s, want %s", got, want)
	}
	if got := c.as(a, "ada", "adasecret1"); !strings.HasPrefix(got, "ada") {
		t.Errorf("ada is %q", got)
	}
	if got := c.as(a, "ada", "wrong"); strings.HasPrefix(got, "ada") {
		t.Errorf("ada with another password is %q", got)
	}
	only := func() {
		t.Helper()
		if got := docker("ps", "--all", "--format={{.Names}}"); got != "database" {
			t.Errorf("containers: %q, want the server's alone", got)
		}
	}
	only()

	c.query(a, "CREATE TABLE t (i INT PRIMARY KEY)")
	c.query(a, "INSERT INTO t VALUES (1)")
	a.must("restart", "")
	a.must("stop_db", "")
	if got := inspect(); !strings.HasSuffix(got, " exited") {
		t.Errorf("after stop_db the container is %s", got)
	}
	a.must("stop_db", "")
	_, version, _ := strings.Cut(c.image, ":")
	a.must("start_db_with_conf_changes", `{"config_contents": `+quoteJSON(c.config(a))+`, "ds_version": "`+version+`"}`)

	// backups, and an empty instance on another host
	a.seen()
	at := a.backUp(func() { c.query(a, "INSERT INTO t SELECT MAX(i)+1 FROM t") })
	only()
	elsewhere, _ := newContainers(t, c.image, c.owner, c.dirs, c.programs...)
	maps.Copy(elsewhere, map[string]any{"store": a.opts["trove"].(map[string]any)["store"]})
	b := c.open(t, elsewhere)
	c.prepare(b, `, "databases": [], "users": [], "backup_info": {"id": "inc", `+at+`}`)
	if got := c.query(b, "SELECT COUNT(*) FROM t"); got != "2" {
		t.Errorf("%s rows are restored, want 2", got)
	}
	if got := c.as(b, "ada", "adasecret1"); !strings.HasPrefix(got, "ada") {
		t.Errorf("ada is %q after the restore", got)
	}

	// another version is another image with the same data
	docker("tag", c.image, c.newer)
	_, newer, _ := strings.Cut(c.newer, ":")
	a.must("upgrade", `{"upgrade_info": {"datastore_version": "`+newer+`"}}`)
	if got := inspect(); !strings.HasPrefix(got, c.newer+" ") {
		t.Errorf("after the upgrade the container is %s", got)
	}
	if got := docker("image", "ls", "--quiet", c.image); got != "" {
		t.Errorf("the old image is still there: %s", got)
	}
	if got := c.query(a, "SELECT COUNT(*) FROM t"); got != "3" {
		t.Errorf("%s rows after the upgrade, want 3", got)
	}
	a.must("create_backup", `{"backup_info": {"id": "after", "datastore": "x", "datastore_version": "1"}}`)

	// A cancelled call ends its program, also in a container.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	g := a.guest()
	if err := g.pipe(ctx, modules.Command{Args: []string{"sleep", "600"}, Dir: "/"}); err == nil {
		t.Error("a program that was stopped has succeeded")
	}
	only()

	// For a version that no registry has, the error contains the version, and the next start must not regard a partial
	// container as the server.
	if got := a.fails("upgrade", `{"upgrade_info": {"datastore_version": "0.0.0"}}`); !strings.Contains(got, ":0.0.0") {
		t.Errorf("an unknown version: %s", got)
	}
	if got := docker("ps", "--all", "--quiet"); got != "" {
		t.Errorf("containers: %s", got)
	}
}
