//go:build linux

package testserver

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// dockerScript starts two registries and the daemon. It is the first process of its namespaces. $1 is the directory, $2 the control
// group, $3 a script that prepares the namespaces.
const dockerScript = `
ip link set lo up
eval "$3" || exit
for port in 5000 5001; do
	mkdir -p "$1/registry$port"
	auth= user=
	[ $port = 5000 ] || { auth=htpasswd; user="$1/users"; }
	env REGISTRY_VERSION=0.1 REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY="$1/registry$port" REGISTRY_HTTP_ADDR=127.0.0.1:$port \
		${auth:+REGISTRY_AUTH=$auth REGISTRY_AUTH_HTPASSWD_REALM=test REGISTRY_AUTH_HTPASSWD_PATH="$user"} \
		docker-registry serve "$1/registry.yml" &
done
dockerd --iptables=false --ip6tables=false --bridge=none --storage-driver=vfs --cgroup-parent="/$2" --data-root="$1/data" --exec-root="$1/exec" \
	--pidfile="$1/pid" --host="unix://$1/s" --host=tcp://127.0.0.1:2375 &
wait
`

// Docker starts a Docker daemon in separate namespaces and returns the path of its socket. The namespaces also
// contain two registries at ports 5000 and 5001 of 127.0.0.1; the second accepts only the user ada with the password
// secret. The daemon has one image, tiny:1, which contains only busybox; its containers end at once when they are
// stopped. The end of the test removes everything: processes, mounts and interfaces with the namespaces, and control
// groups by their name.
func Docker(t testing.TB) (socket string) {
	t.Helper()
	socket, _ = DockerAfter(t, "")
	return socket
}

// DockerAfter is [Docker] after a shell script, which may mount what containers shall see of the host. pid is the process whose
// namespaces the daemon has.
func DockerAfter(t testing.TB, script string) (socket string, pid int) {
	t.Helper()
	prereq.Root(t)
	for _, p := range [...]string{"dockerd", "docker-registry", "docker", "ip"} {
		Program(t, p)
	}
	unshare, busybox := Program(t, "unshare"), Program(t, "busybox")
	dir, _ := Dir(t, "")
	group := filepath.Base(dir)
	t.Cleanup(func() { removeGroups(t, group) })
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("registry.yml", "version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: /nowhere}}\nhttp: {addr: 127.0.0.1:1}\n")
	write("users", "ada:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n")
	server := Start(t, nil, syscall.SIGKILL, unshare, "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", dockerScript, "sh", dir, group, script)
	socket = filepath.Join(dir, "s")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	Until(t, "dockerd", func(ctx context.Context) error {
		return ask(ctx, client, http.MethodGet, "/_ping", nil)
	})
	image, err := tinyImage(busybox)
	if err == nil {
		err = ask(t.Context(), client, http.MethodPost, "/images/load", bytes.NewReader(image))
	}
	if err != nil {
		t.Fatal(err)
	}
	parent := strconv.Itoa(server.cmd.Process.Pid)
	children, err := os.ReadFile("/proc/" + parent + "/task/" + parent + "/children")
	if err == nil {
		pid, err = strconv.Atoi(strings.TrimSpace(string(children)))
	}
	if err != nil {
		t.Fatalf("cannot find the namespaces of dockerd: %v", err)
	}
	return socket, pid
}

func ask(ctx context.Context, client *http.Client, method, path string, body io.Reader) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return err
}

// tinyImage returns an archive in the format of docker save. Its image contains busybox under the names of the
// programs that the cases run.
func tinyImage(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	files := []file{{Header: tar.Header{Name: "bin/busybox", Mode: 0o755}, text: program},
		{Header: tar.Header{Name: "etc/passwd", Mode: 0o644}, text: []byte("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")}}
	for _, dir := range [...]string{"bin/", "etc/", "tmp/"} {
		files = append(files, file{Header: tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}})
	}
	for name := range strings.FieldsSeq("sh cat chmod echo env false head hostname id kill ls mkdir pwd rm sha256sum sleep stat tee test touch true") {
		files = append(files, file{Header: tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}})
	}
	layer, err := packed(files)
	if err != nil {
		return nil, err
	}
	const created = `"created":"2025-01-02T03:04:05Z"`
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux",%s,"config":{"Cmd":["/bin/sh"],"StopSignal":"KILL"},`+
		`"rootfs":{"type":"layers","diff_ids":["sha256:%x"]},"history":[{%s,"created_by":"/bin/sh -c #(nop) ADD busybox"}]}`,
		runtime.GOARCH, created, sha256.Sum256(layer), created)
	return packed([]file{{Header: tar.Header{Name: "layer.tar", Mode: 0o644}, text: layer}, {Header: tar.Header{Name: "config.json", Mode: 0o644}, text: []byte(config)},
		{Header: tar.Header{Name: "manifest.json", Mode: 0o644}, text: []byte(`[{"Config":"config.json","RepoTags":["tiny:1"],"Layers":["layer.tar"]}]`)}})
}

// file is a member of a tar archive.
type file struct {
	tar.Header
	text []byte
}

func packed(files []file) ([]byte, error) {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	for _, f := range files {
		f.Size = int64(len(f.text))
		if err := t.WriteHeader(&f.Header); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := t.Close()
	return out.Bytes(), err
}

// removeGroups removes the control groups of a daemon that has ended, innermost first.
func removeGroups(t testing.TB, name string) {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, root := range append(roots, "/sys/fs/cgroup/"+name) {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			Until(t, "the control group of a container", func(context.Context) error {
				if err := os.Remove(dirs[i]); !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return nil
			})
		}
	}
}
