package heat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

// option returns a text from the options of the configuration.
func (g *groupRun) option(name string) string {
	if v := g.d.Options[name]; v != nil && v != false {
		return pytext.Str(v)
	}
	return ""
}

// inputs returns the values of the inputs by name.
func (g *groupRun) inputs() map[string]any {
	all := make(map[string]any, len(g.d.Inputs))
	for _, in := range g.d.Inputs {
		all[in.Name] = in.Value
	}
	return all
}

// done returns the result of a group that has nothing to run.
func done() Result { return Result{keyStdout: "", keyStderr: "", keyStatus: int64(0)} }

// runAnsible runs the configuration as a playbook on this host. Inputs are extra variables in a file, because they
// may be secret.
func runAnsible(ctx context.Context, g *groupRun) (Result, error) {
	work, outputs, err := g.prepare()
	if err != nil {
		return nil, err
	}
	if g.d.ConfigText() == "" {
		return done(), nil
	}
	vars := g.inputs()
	vars["heat_config_id"], vars["heat_outputs_path"] = g.d.ID, outputs
	playbook := filepath.Join(work, g.d.ID+"_playbook.yaml")
	variables := filepath.Join(work, g.d.ID+"_variables.json")
	err = errors.Join(writePrivate(playbook, []byte(g.d.ConfigText())), writePrivate(variables, encode(vars)))
	if err != nil {
		return nil, err
	}
	inventory := "localhost,"
	if name := g.option("inventory"); name != "" {
		inventory = filepath.Join(work, name)
	}
	args := []string{"ansible-playbook", "-i", inventory}
	for _, o := range [...][2]string{{"modulepath", "--module-path"}, {"skip_tags", "--skip-tags"}, {"tags", "--tags"}} {
		if v := g.option(o[0]); v != "" {
			args = append(args, o[1], v)
		}
	}
	args = append(args, playbook, "--extra-vars", "@"+variables)
	var env []string
	if v := g.option("callback_plugins"); v != "" {
		env = append(env, "ANSIBLE_CALLBACK_PLUGINS="+v)
	}
	r, err := g.program(ctx, modules.Command{Args: args, Dir: work, Env: env})
	if err == nil {
		g.readOutputs(r, outputs)
	}
	return r, err
}

// runApplyConfig runs os-apply-config, which renders the templates of the image with the metadata. It does not use
// the deployment's configuration.
func runApplyConfig(ctx context.Context, g *groupRun) (Result, error) {
	return g.program(ctx, modules.Command{Args: []string{"os-apply-config"}, Dir: "/"})
}

// fileName reports whether a name is a valid file name.
func fileName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 200 && !strings.ContainsAny(name, "/\x00")
}

// runPuppet applies the configuration as a manifest. Inputs are facts, or data for hiera. Exit code 2 means success
// with changes.
func runPuppet(ctx context.Context, g *groupRun) (Result, error) {
	work, outputs, err := g.prepare()
	if err != nil {
		return nil, err
	}
	var env []string
	if name := hostname(ctx, g); name != "" {
		env = append(env, "FACTER_fqdn="+name)
	}
	if v, ok := g.d.Options["enable_facter"]; !ok || pytext.Truth(v) {
		env = append(env, g.environ("FACTER_")...)
	}
	if pytext.Truth(g.d.Options["enable_hiera"]) {
		if !fileName(g.d.Name) {
			return nil, fmt.Errorf("the name %q cannot be a file of hiera", g.d.Name)
		}
		file := filepath.Join(g.paths.at(hieraDir), "heat_config_"+g.d.Name+".json")
		if err := writePrivate(file, encode(g.inputs())); err != nil {
			return nil, err
		}
		env = append(env, "FACTER_deploy_config_name="+g.d.Name)
	}
	env = append(env, "FACTER_heat_outputs_path="+outputs)
	manifest := filepath.Join(work, g.d.ID+".pp")
	if err := writePrivate(manifest, []byte(g.d.ConfigText())); err != nil {
		return nil, err
	}
	args := []string{"puppet", "apply", "--color", "false", "--detailed-exitcodes", "--logdest", "console"}
	for _, o := range [...]string{"modulepath", "tags"} {
		if v := g.option(o); v != "" {
			args = append(args, "--"+o, v)
		}
	}
	for _, o := range [...]string{"debug", "verbose"} {
		if pytext.Truth(g.d.Options["enable_"+o]) {
			args = append(args, "--"+o, "--logdest", "/var/log/puppet/heat-"+o+".log")
		}
	}
	r, err := g.program(ctx, modules.Command{Args: append(args, manifest), Dir: work, Env: env}, 2)
	if err == nil {
		g.readOutputs(r, outputs)
	}
	return r, err
}

// hieraDir is the directory of hiera's data files.
const hieraDir = "/etc/puppet/hieradata"

// hostname returns the host's full name, or "" if it is unknown.
func hostname(ctx context.Context, g *groupRun) string {
	res, err := g.Cmd(ctx, modules.Command{Args: []string{"hostname", "-f"}, Limit: 4 << 10})
	if err != nil || res.ExitCode != 0 {
		return ""
	}
	return strings.TrimSpace(string(res.Stdout))
}

// runChef runs chef-client in local mode. The configuration is the run list as JSON, and inputs are attributes of the
// node.
func runChef(ctx context.Context, g *groupRun) (Result, error) {
	work, outputs, err := g.prepare()
	if err != nil {
		return nil, err
	}
	runList, err := pyjson.Parse([]byte(g.d.ConfigText()))
	if err != nil {
		return nil, fmt.Errorf("the configuration must be a run list: %w", err)
	}
	kitchen := filepath.Join(work, "kitchen")
	if v := g.option("kitchen_path"); v != "" {
		kitchen = g.paths.at(v)
	}
	if from := g.option("kitchen"); from != "" {
		if r, err := g.fetchKitchen(ctx, from, kitchen); err != nil || r != nil {
			return r, err
		}
	}
	name := hostname(ctx, g)
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return failed("Could not determine hostname with hostname -f"), nil
	}
	config := []string{"log_level :debug", "log_location STDOUT", "local_mode true", "chef_zero.enabled true",
		"cookbook_path " + ruby(filepath.Join(kitchen, "cookbooks")), "role_path " + ruby(filepath.Join(kitchen, "roles")),
		"environment_path " + ruby(filepath.Join(kitchen, "environments"))}
	attributes := map[string]any{}
	for _, in := range g.d.Inputs {
		switch {
		case in.Name == "environment":
			config = append(config, "environment "+ruby(asText(in.Value)))
		case !strings.HasPrefix(in.Name, "deploy_"): // these include the signal's secrets
			attributes[in.Name] = in.Value
		}
	}
	attributes["run_list"] = runList
	node := filepath.Join(work, "node", name+".json")
	config = append(config, "node_path "+ruby(filepath.Dir(node)))
	attributesText, err := json.MarshalIndent(attributes, "", "    ")
	if err != nil {
		return nil, err
	}
	client := filepath.Join(work, "client.rb")
	if err := errors.Join(writePrivate(node, attributesText), writePrivate(client, []byte(strings.Join(config, "\n")))); err != nil {
		return nil, err
	}
	r, err := g.program(ctx, modules.Command{Args: []string{"chef-client", "-z", "--config", client, "-j", node}, Dir: work,
		Env: []string{"heat_outputs_path=" + outputs}})
	if err == nil {
		g.readOutputs(r, outputs)
	}
	return r, err
}

// ruby returns a text as a Ruby literal.
func ruby(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// fetchKitchen clones the cookbooks. A result means that this failed. An update clones them again.
func (g *groupRun) fetchKitchen(ctx context.Context, from, kitchen string) (Result, error) {
	if g.d.Input("deploy_action") == "UPDATE" {
		if err := os.RemoveAll(kitchen); err != nil {
			return nil, err
		}
	}
	r, err := g.program(ctx, modules.Command{Args: []string{"git", "clone", "--", from, kitchen}, Dir: filepath.Dir(kitchen)})
	if err != nil || r.Status() != 0 {
		return r, err
	}
	return nil, nil
}

// runCompose starts the containers of a compose file. The files in the input env_files are written to its directory.
func runCompose(ctx context.Context, g *groupRun) (Result, error) {
	if g.d.Input("deploy_action") == "DELETE" || g.d.ConfigText() == "" {
		return done(), nil
	}
	if !fileName(g.d.Name) {
		return nil, fmt.Errorf("the name %q cannot be a project", g.d.Name)
	}
	dir := filepath.Join(g.paths.work(g.group), g.d.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config := g.d.Config
	if text, ok := config.(string); ok {
		var err error
		if config, err = yaml.Parse([]byte(text), "the compose file"); err != nil {
			return nil, err
		}
	}
	if err := g.writeEnvFiles(dir, config); err != nil {
		return nil, err
	}
	text := g.d.ConfigText()
	if _, isMap := g.d.Config.(map[string]any); isMap {
		var err error
		if text, err = yaml.Marshal(g.d.Config); err != nil {
			return nil, err
		}
	}
	// The original hook lets os-apply-config write the file.
	if err := writePrivate(filepath.Join(dir, "docker-compose.yml"), []byte(text)); err != nil {
		return nil, err
	}
	return g.program(ctx, modules.Command{Args: []string{"docker-compose", "up", "-d", "--no-build"}, Dir: dir})
}

// writeEnvFiles writes the files in the input env_files that a service refers to.
func (g *groupRun) writeEnvFiles(dir string, config any) error {
	content := map[string]string{}
	given := g.inputs()["env_files"]
	if text, ok := given.(string); ok && text != "" {
		v, err := parseLiteral(text)
		if err != nil {
			return fmt.Errorf("env_files: %w", err)
		}
		given = v
	}
	list, _ := given.([]any)
	for _, v := range list {
		m, _ := v.(map[string]any)
		name, _ := m["file_name"].(string)
		content[name], _ = m["content"].(string)
	}
	services, _ := config.(map[string]any)
	if nested, ok := services["services"].(map[string]any); ok {
		services = nested
	}
	var names []string
	for _, v := range services {
		s, _ := v.(map[string]any)
		switch f := s["env_file"].(type) {
		case string:
			names = append(names, f)
		case []any:
			for _, x := range f {
				names = append(names, pytext.Str(x))
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		text, ok := content[name]
		if !ok {
			continue
		}
		path := filepath.Join(dir, name)
		if filepath.IsAbs(name) {
			path = g.paths.at(name)
		}
		if err := writePrivate(path, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// configMap returns the configuration as a map.
func (g *groupRun) configMap() (map[string]any, error) {
	switch v := g.d.Config.(type) {
	case map[string]any:
		return v, nil
	case string:
		return parseMap([]byte(v), "the configuration")
	}
	return nil, fmt.Errorf("the configuration must be a map, not %s", kind(g.d.Config))
}

// indented formats JSON as the hooks do: sorted, with four blanks per level.
func indented(v any) []byte {
	text, err := pyjson.Format(v, pyjson.Options{Indent: 4, Sort: true, ASCII: true})
	if err != nil {
		return []byte("null")
	}
	return []byte(text)
}

// runJSONFile writes each key of the configuration to a JSON file.
func runJSONFile(_ context.Context, g *groupRun) (Result, error) {
	config, err := g.configMap()
	if err != nil {
		return nil, err
	}
	for path, v := range config {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("the path %q must be absolute", path)
		}
		if err := writeHostFile(g.paths.at(path), indented(v), 0o644); err != nil {
			return nil, err
		}
	}
	return done(), nil
}

// runHiera writes hiera's data files and hierarchy.
func runHiera(_ context.Context, g *groupRun) (Result, error) {
	config, err := g.configMap()
	if err != nil {
		return nil, err
	}
	dir := g.paths.at(hieraDir)
	if list, ok := config["hierarchy"].([]any); ok {
		text := "\n---\n:backends:\n  - json\n:json:\n  :datadir: " + hieraDir + "\n:hierarchy:\n"
		for _, v := range list {
			text += "  - " + pytext.Str(v) + "\n"
		}
		if err := writeHostFile(g.paths.at("/etc/puppet/hiera.yaml"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	files, _ := config["datafiles"].(map[string]any)
	for name, v := range files {
		path := filepath.Join(dir, name+".json")
		if !strings.HasPrefix(path, dir+"/") {
			return nil, fmt.Errorf("the data file %q leads out of %s", name, hieraDir)
		}
		if err := writeHostFile(path, indented(v), 0o600); err != nil {
			return nil, err
		}
	}
	return done(), nil
}

// lastMetadata is the file where cfn-init and cfn-hup look for the metadata.
const lastMetadata = "/var/cache/heat-cfntools/last_metadata"

// runCFNInit applies AWS::CloudFormation::Init metadata with the execution function cfn.init, or with the program
// cfn-init if the minion does not have the function.
func runCFNInit(ctx context.Context, g *groupRun) (Result, error) {
	config, err := g.configMap()
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{"AWS::CloudFormation::Init": config}
	if err := writePrivate(g.paths.at(lastMetadata), encode(metadata)); err != nil {
		return nil, err
	}
	v, err := g.ExecKw(ctx, "cfn.init", nil, map[string]any{"metadata": metadata})
	if _, missing := errors.AsType[*modules.NotAvailableError](err); missing {
		return g.program(ctx, modules.Command{Args: []string{"cfn-init"}, Dir: "/"})
	}
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return nil, err
	}
	r := done()
	r[keyStdout] = text
	if m, ok := v.(map[string]any); ok && m["result"] == false || g.Context().Retcode() != 0 {
		r[keyStdout], r[keyStderr], r[keyStatus] = "", text, int64(1)
	}
	return r, nil
}
