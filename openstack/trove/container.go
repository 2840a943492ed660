package trove

import (
	"context"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// With the container method of Trove's agent (trove.guestagent.utils.docker), the server is a Docker container. The
// tag of its image is the datastore's version. The datastore's programs run in temporary containers of the same
// image.
//
//	guest ─ start, stop, restart ─▶ docker run, start, stop, restart ─▶ the container "database"
//	      ─ pipe, asOwner ────────▶ docker run --rm ──────────────────▶ initdb, mariabackup, pg_rewind …
//	      ─ SQL ──────────────────▶ the server's socket on the host
//
// All containers use the host's network, and mount its directories at the same paths.

// The methods of running a datastore.
const (
	wayPackages  = "packages"
	wayContainer = "container"
)

// databaseContainer is the name of the server's container, as in Trove.
const databaseContainer = "database"

// rootInside is the user of programs that must read all files in the mounted directories.
const rootInside = "0:0"

func (s *settings) inContainer() bool { return s.way == wayContainer }

// docker runs the program docker and returns its output.
func (g *guest) docker(ctx context.Context, args ...string) (string, error) {
	r, err := g.c.Cmd(ctx, modules.Command{Args: g.dockerArgs(args...), Dir: "/"})
	if err != nil {
		return "", modules.Errorf("cannot run docker: %v", err)
	}
	if r.ExitCode != 0 {
		return "", modules.Errorf("docker %s failed with %d: %s", args[0], r.ExitCode, strings.TrimSpace(string(r.Stderr)))
	}
	return strings.TrimSpace(string(r.Stdout)), nil
}

func (g *guest) dockerArgs(args ...string) []string {
	return append([]string{"docker", "--host=unix://" + g.c.Path(g.dockerSocket)}, args...)
}

// containerImage returns the image of the server's container, or "" if there is no such container.
func (g *guest) containerImage(ctx context.Context) (string, error) {
	return g.docker(ctx, "container", "ls", "--all", "--filter=name=^/"+databaseContainer+"$", "--format={{.Image}}")
}

// image returns the image of the datastore: that of the server's container or, if there is none, that of the
// configured version.
func (g *guest) image(ctx context.Context) (string, error) {
	image, err := g.containerImage(ctx)
	if err != nil || image != "" {
		return image, err
	}
	if g.version == "" {
		return g.dockerImage + ":latest", nil
	}
	return g.dockerImage + ":" + g.version, nil
}

// mounts returns docker's options for the host directories that every container mounts.
func (g *guest) mounts() []string {
	var args []string
	for _, dir := range []string{g.mountPoint, path.Dir(g.configFile), g.socketDir()} {
		dir = g.c.Path(dir)
		if arg := "--volume=" + dir + ":" + dir; !slices.Contains(args, arg) {
			args = append(args, arg)
		}
	}
	return args
}

// socketDir returns the directory of the server's socket.
func (s *settings) socketDir() string {
	if s.manager == managerPostgres {
		return s.socket
	}
	return path.Dir(s.socket)
}

// ownerInside returns the user that the server and the programs for its data run as.
func (g *guest) ownerInside() string { return g.owner + ":" + g.owner }

// controlContainer starts, stops or restarts the server's container. The first start creates it.
func (g *guest) controlContainer(ctx context.Context, fun string) error {
	image, err := g.containerImage(ctx)
	if err != nil {
		return err
	}
	seconds := strconv.Itoa(max(1, int(g.wait.Seconds())))
	switch {
	case fun == "stop" && image == "":
		return nil
	case fun != "start" && image != "":
		_, err = g.docker(ctx, fun, "--time="+seconds, databaseContainer)
		return err
	case image != "":
		_, err = g.docker(ctx, "start", databaseContainer)
		return err
	}
	if image, err = g.image(ctx); err != nil {
		return err
	}
	for _, dir := range []string{path.Dir(g.configFile), g.socketDir()} {
		if err := g.ensureDir(dir, 0o755); err != nil {
			return err
		}
	}
	args := slices.Concat([]string{"run", "--detach", "--name=" + databaseContainer, "--restart=unless-stopped", "--network=host",
		"--user=" + g.ownerInside()}, g.mounts(), g.db.serverOptions(), []string{image}, g.db.serverArgs())
	if _, err = g.docker(ctx, args...); err != nil {
		// A container that was created but did not start would be regarded as the server next time.
		_, _ = g.docker(context.WithoutCancel(ctx), "rm", "--force", databaseContainer)
	}
	return err
}

// inside returns the command that runs a program of the datastore, in a container or directly. user is the user in
// the container. done removes a container that survives its command, as happens when the command is killed.
func (g *guest) inside(ctx context.Context, cmd modules.Command, user string) (inside modules.Command, done func(), err error) {
	if !g.inContainer() {
		return cmd, func() {}, nil
	}
	image, err := g.image(ctx)
	if err != nil {
		return cmd, nil, err
	}
	users, err := g.writeUsers()
	if err != nil {
		return cmd, nil, err
	}
	name := databaseContainer + "-" + path.Base(cmd.Args[0]) + "-" + strconv.FormatInt(g.c.Now().UnixNano(), 36)
	temp := os.TempDir()
	// Docker's log would contain a copy of the program's output: for a backup, the whole database.
	args := slices.Concat(g.dockerArgs("run", "--rm", "--log-driver=none", "--name="+name, "--network=host", "--user="+user, "--volume="+temp+":"+temp,
		"--volume="+users+":/etc/passwd:ro", "--entrypoint="+cmd.Args[0]), g.mounts())
	if cmd.Stdin != nil {
		args = append(args, "--interactive")
	}
	for _, setting := range cmd.Env {
		variable, _, _ := strings.Cut(setting, "=")
		args = append(args, "--env="+variable) // the value comes from the environment, since all users can read command lines
	}
	arguments := cmd.Args[1:]
	cmd.Args = slices.Concat(args, []string{image}, arguments)
	cmd.RunAs = ""
	return cmd, func() {
		if ctx.Err() != nil {
			_, _ = g.docker(context.WithoutCancel(ctx), "rm", "--force", name)
		}
	}, nil
}

// writeUsers writes the passwd file for the containers of programs, and returns its path on the host. PostgreSQL's
// programs look up the user that they run as, and an image does not contain this guest's user.
func (g *guest) writeUsers() (string, error) {
	file := path.Join(g.stateDir, "container.passwd")
	if err := os.MkdirAll(g.c.Path(g.stateDir), 0o755); err != nil {
		return "", modules.Errorf("cannot make the directory %s: %v", g.stateDir, err)
	}
	text := "root:x:0:0:root:/root:/bin/sh\ndatabase:x:" + g.owner + ":" + g.owner + ":database:" + g.mountPoint + ":/bin/sh\n"
	if b, err := os.ReadFile(g.c.Path(file)); err == nil && string(b) == text {
		return g.c.Path(file), nil // running containers have mounted it
	}
	return g.c.Path(file), g.markWith(path.Base(file), text)
}

// upgradeContainer replaces the server's container by one of another version with the same data. It removes the old
// image after the new server has answered.
func (g *guest) upgradeContainer(ctx context.Context, version string) error {
	old, err := g.containerImage(ctx)
	if err != nil {
		return err
	}
	if err := g.stopIfRunning(ctx); err != nil {
		return err
	}
	if _, err := g.docker(ctx, "rm", "--force", databaseContainer); err != nil {
		return err
	}
	g.version = version
	if err := g.start(ctx, true); err != nil {
		return err
	}
	if old != "" && old != g.dockerImage+":"+version {
		if _, err := g.docker(ctx, "image", "rm", old); err != nil {
			g.c.Logger().Warn("The image of before the upgrade stays", "image", old, "err", err)
		}
	}
	return nil
}
