package dockermod

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func jsonText(v any) string {
	text, err := pyjson.Format(v, pyjson.Options{Indent: -1, ASCII: true})
	if err != nil {
		return ""
	}
	return text
}

// images returns the tagged images, followed by all others if all is set.
func (d *client) images(all bool) ([]dict, error) {
	query := dict{"only_ids": int64(0), "all": int64(0)}
	if all {
		query["all"] = int64(1)
	}
	list, err := d.list("images", request{query: query})
	var tagged, untagged []dict
	for _, m := range list {
		if _, ok := m["Id"].(string); !ok {
			continue
		}
		renamed(m)
		human(m, "Size", "VirtualSize")
		if tags, ok := m["RepoTags"].([]any); ok && !(len(tags) == 1 && tags[0] == "<none>:<none>") {
			tagged = append(tagged, m)
		} else if all {
			untagged = append(untagged, m)
		}
	}
	return append(tagged, untagged...), err
}

// topLevel returns the images of subset that are not the parent of another image.
func topLevel(all, subset []dict) []dict {
	parents := map[any]bool{}
	for _, m := range all {
		parents[m["ParentId"]] = true
	}
	var out []dict
	for _, m := range subset {
		if !parents[m["Id"]] {
			out = append(out, m)
		}
	}
	return out
}

// short returns the first twelve characters of an id, which Salt's functions show.
func short(id any) string {
	s := pytext.Str(id)
	return s[:min(12, len(s))]
}

func (d *client) inspectImage(name any) (dict, error) {
	m, err := d.dict("inspect_image", request{id: name})
	human(m, "Size", "VirtualSize")
	return m, err
}

// resolveImage returns the id of an image, or False if there is no such image.
func (d *client) resolveImage(name any) (any, error) {
	m, err := d.inspectImage(name)
	if err == nil && m["Id"] != nil {
		return m["Id"], nil
	}
	if err != nil && !modules.IsExecError(err) {
		return nil, err
	}
	return false, nil
}

func (d *client) resolveTag(name any) (any, error) {
	kw := d.keywords()
	all := pytext.Truth(pop(kw, "all", false))
	if err := invalid(kw); err != nil {
		return nil, err
	}
	m, err := d.inspectImage(name)
	if err != nil {
		if modules.IsExecError(err) {
			return false, nil
		}
		return nil, err
	}
	tags, _ := m["RepoTags"].([]any)
	switch {
	case all && len(tags) > 0:
		return tags, nil
	case all:
		return []any{m["Id"]}, nil
	case len(tags) > 0:
		return tags[0], nil
	}
	return m["Id"], nil
}

func (d *client) listTags() ([]any, error) {
	list, err := d.images(false)
	tags := map[string]bool{}
	for _, m := range list {
		own, _ := m["RepoTags"].([]any)
		for _, x := range own {
			tags[pytext.Str(x)] = true
		}
	}
	return sortedSet(tags), err
}

func (d *client) history(name any) (any, error) {
	list, err := d.list("history", request{id: name})
	if err != nil {
		return nil, err
	}
	ret := make([]any, len(list))
	for i := range list {
		m := list[len(list)-1-i]
		renamed(m)
		human(m, "Size")
		cmd, _ := pop(m, "CreatedBy", "").(string)
		if rest, ok := strings.CutPrefix(cmd, "/bin/sh -c "); ok {
			cmd = strings.TrimPrefix(rest, "#(nop) ")
		} else if cmd == "" {
			cmd = "FROM scratch"
		}
		m["Command"] = cmd
		if ret[i] = m; d.Bool("quiet") {
			ret[i] = cmd
		}
	}
	return ret, nil
}

func (d *client) layers(name any) (any, error) {
	list, err := d.list("history", request{id: name})
	if status, _ := refusal(err); status == "404" || err == nil && len(list) == 0 {
		return nil, modules.Errorf("Image '%s' not found", pytext.Str(name))
	}
	ret := []any{}
	for i := len(list) - 1; i >= 0; i-- {
		ret = append(ret, short(strings.TrimPrefix(pytext.Str(list[i]["Id"]), "sha256:")))
	}
	return ret, err
}

func (d *client) depends(name any) (dict, error) {
	image, err := d.inspectImage(name)
	if err != nil {
		return nil, err
	}
	list, err := d.containers(true, nil)
	if err != nil {
		return nil, err
	}
	containers, children := []any{}, []any{}
	for _, m := range list {
		if m["ImageID"] == image["Id"] {
			for _, n := range names(m) {
				containers = append(containers, n)
			}
		}
	}
	images, err := d.images(true)
	for _, m := range images {
		if m["ParentId"] == image["Id"] {
			children = append(children, short(m["Id"]))
		}
	}
	return dict{"Containers": containers, "Images": children}, err
}

func (d *client) search() (any, error) {
	list, err := d.list("search", request{query: dict{"term": d.Value("name")}})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, modules.Errorf("No images matched the search string '%s'", d.Str("name"))
	}
	ret := dict{}
	for _, m := range list {
		entry := dict{}
		for k, v := range m {
			switch k {
			case "name":
				continue
			case "description":
				k = "Description"
			case "is_official":
				k = "Official"
			case "is_trusted":
				k = "Trusted"
			case "star_count":
				k = "Stars"
			}
			entry[k] = v
		}
		official, trusted := d.Bool("official"), d.Bool("trusted")
		if !official && !trusted || official && pytext.Truth(entry["Official"]) || trusted && pytext.Truth(entry["Trusted"]) {
			ret[pytext.Str(m["name"])] = entry
		}
	}
	return ret, nil
}

// addTo appends to a list of layers, once each.
func addTo(ret dict, list string, id any) {
	layers := get(ret, "Layers")
	if layers == nil {
		layers = dict{}
		ret["Layers"] = layers
	}
	have, _ := layers[list].([]any)
	if !slices.Contains(have, id) {
		layers[list] = append(have, id)
	}
}

// status reads an event of a build, a pull or a push; errs gets its error.
func status(ret dict, fun string, v any, errs *[]any) {
	event, _ := v.(dict)
	if detail := get(event, "errorDetail"); detail != nil {
		text := pytext.Str(detail["message"])
		if code, ok := detail["code"]; ok {
			text = pytext.Str(code) + ": " + text
		}
		*errs = append(*errs, text)
		return
	}
	if text, ok := event["stream"].(string); ok {
		if fun == "build" {
			buildStatus(ret, text)
		}
		return
	}
	text, ok := event["status"].(string)
	if !ok {
		return
	}
	if fun == "push" {
		text = strings.ToLower(text)
		switch id, ok := event["id"]; {
		case !ok:
		case strings.Contains(text, "already pushed") || strings.Contains(text, "already exists"):
			addTo(ret, "Already_Pushed", id)
		case text == "pushed" || strings.Contains(text, "successfully pushed"):
			addTo(ret, "Pushed", id)
		}
		return
	}
	switch {
	case text == "Already exists":
		addTo(ret, "Already_Pulled", event["id"])
	case text == "Pull complete" || text == "Download complete":
		addTo(ret, "Pulled", event["id"])
	case strings.HasPrefix(text, "Status: "):
		ret["Status"] = text[len("Status: "):]
	}
}

func buildStatus(ret dict, text string) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	if strings.Contains(text, "Running in") {
		list, _ := ret["Intermediate_Containers"].([]any)
		ret["Intermediate_Containers"] = append(list, last)
	}
	if strings.Contains(text, "Successfully built") {
		ret["Id"] = last
	}
}

// repositoryTag cuts a tag or a digest off the name of an image (docker-py parse_repository_tag).
func repositoryTag(name string) (repository, tag string) {
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		return name[:i], name[i+1:]
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.Contains(name[i:], "/") {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// transfer pulls or pushes an image.
func (d *client) transfer(fun, repository string, r request) (any, error) {
	if d.Bool("insecure_registry") {
		return nil, unable(fun, "ImageApiMixin."+fun+"() got an unexpected keyword argument 'insecure_registry'")
	}
	var err error
	if r.header, err = d.authorize(fun, repository); err != nil {
		return nil, err
	}
	begin := d.Now()
	events, err := d.events(fun, r)
	if err != nil {
		return nil, err
	}
	ret := dict{"Time_Elapsed": d.elapsed(begin), "retcode": int64(0)}
	if d.Bool("api_response") {
		ret["API_Response"] = events
	}
	var errs []any
	for _, e := range events {
		status(ret, fun, e, &errs)
	}
	if len(errs) > 0 {
		ret["Errors"], ret["retcode"] = errs, int64(1)
	}
	return ret, nil
}

func (d *client) pull(image any) (any, error) {
	name, ok := image.(string)
	if !ok {
		return nil, unable("pull", "'"+modules.TypeName(image)+"' object has no attribute 'rsplit'")
	}
	repository, tag := repositoryTag(name)
	if tag == "" {
		tag = "latest"
	}
	return d.transfer("pull", repository, request{query: dict{"tag": tag, "fromImage": repository}})
}

func (d *client) push() (any, error) {
	repository, tag := repositoryTag(d.Str("image"))
	r := request{id: repository, query: dict{}, body: dict{}}
	if tag != "" {
		r.query["tag"] = tag
	}
	return d.transfer("push", repository, r)
}

func (d *client) tag(name any, repository, tag string) error {
	m, err := d.inspectImage(name)
	if err != nil {
		return err
	}
	force := int64(0)
	if d.Bool("force") {
		force = 1
	}
	_, err = d.call("tag", request{id: m["Id"], query: dict{"repo": repository, "tag": tag, "force": force}})
	return err
}

func (d *client) commit() (any, error) {
	begin := d.Now()
	m, err := d.dict("commit", request{patience: forever, body: dict{}, query: dict{"container": d.Value("name"), "repo": d.Str("repository"),
		"tag": d.Str("tag"), "comment": d.Value("message"), "author": d.Value("author"), "pause": true}})
	if err != nil {
		return nil, err
	}
	if m["Id"] == nil {
		return nil, modules.Errorf("No image ID was returned in API response")
	}
	return dict{"Time_Elapsed": d.elapsed(begin), "Id": m["Id"]}, nil
}

func (d *client) dangling() (any, error) {
	all, err := d.images(true)
	if err != nil {
		return nil, err
	}
	ids, ret := []any{}, dict{}
	for _, m := range topLevel(all, all) {
		if tags, _ := m["RepoTags"].([]any); len(tags) > 0 && tags[0] != "<none>:<none>" {
			continue
		}
		id := short(m["Id"])
		if ids = append(ids, id); !d.Bool("prune") {
			continue
		}
		entry := dict{}
		if entry["Removed"], err = d.rmi([]any{id}, d.Bool("force"), true); err != nil {
			if !modules.IsExecError(err) {
				return nil, err
			}
			entry["Comment"], entry["Removed"] = err.Error(), false
		}
		ret[id] = entry
	}
	if d.Bool("prune") {
		return ret, nil
	}
	return ids, nil
}

func (d *client) rmi(images []any, force, prune bool) (any, error) {
	before, err := d.images(true)
	if err != nil {
		return nil, err
	}
	tags, err := d.listTags()
	if err != nil {
		return nil, err
	}
	var errs []any
	for _, name := range images {
		m, err := d.inspectImage(name)
		if err != nil {
			return nil, err
		}
		_, err = d.call("remove_image", request{id: m["Id"], query: dict{"force": force, "noprune": !prune}})
		code, said := refusal(err)
		switch {
		case err == nil:
		case code == "":
			return nil, err
		case code != "409":
			errs = append(errs, err.Error())
		default:
			errs = append(errs, said)
			deps, err := d.depends(name)
			if err != nil {
				return nil, err
			}
			if text := uses(deps); text != "" {
				errs = append(errs, "Image is in use by "+text)
			}
		}
	}
	after, err := d.images(true)
	if err != nil {
		return nil, err
	}
	left, err := d.listTags()
	ret := dict{"Layers": missing(before, after), "retcode": int64(0),
		"Tags": slices.DeleteFunc(tags, func(t any) bool { return slices.Contains(left, t) })}
	if len(errs) > 0 {
		ret["Errors"], ret["retcode"] = errs, int64(1)
	}
	return ret, err
}

// uses names what depends on an image.
func uses(deps dict) string {
	var list []string
	for _, kind := range [...][2]string{{"Containers", "container(s): "}, {"Images", "image(s): "}} {
		var parts []string
		for _, x := range deps[kind[0]].([]any) {
			parts = append(parts, x.(string))
		}
		if len(parts) > 0 {
			list = append(list, kind[1]+strings.Join(parts, ", "))
		}
	}
	return strings.Join(list, " and ")
}

func (d *client) importImage() (any, error) {
	source := d.Str("source")
	file, err := d.cached(d.Value("source"))
	if err != nil {
		return nil, err
	}
	repository, tag := d.Str("repository"), d.Str("tag")
	r := request{query: dict{"repo": repository, "tag": tag, "fromSrc": file}}
	if d.IsFile(file) {
		f, err := os.Open(d.Path(file))
		if err != nil {
			return nil, modules.OSError(err)
		}
		defer f.Close()
		r.query["fromSrc"], r.body, r.header = "-", f, map[string]string{"Content-Type": "application/tar"}
	}
	begin := d.Now()
	events, err := d.events("import_image", r)
	if err != nil {
		return nil, err
	}
	ret := dict{"Time_Elapsed": d.elapsed(begin)}
	if d.Bool("api_response") {
		ret["API_Response"] = events
	}
	var errs []any
	for _, e := range events {
		m, _ := e.(dict)
		if id, _ := m["status"].(string); strings.HasPrefix(id, "sha256:") {
			ret["Id"], ret["Image"] = id, repository+":"+tag
		}
		status(dict{}, "import", e, &errs)
	}
	if ret["Id"] == nil {
		return nil, failed("Import failed for "+source, errs)
	}
	return ret, nil
}

// failed returns the error for a failed build or import, including the daemon's messages.
func failed(text string, errs []any) error {
	if len(errs) > 0 {
		text += ". Error(s) follow:"
	}
	for _, e := range errs {
		text += "\n\n" + e.(string)
	}
	return modules.Errorf("%s", text)
}

func (d *client) load() (any, error) {
	repository, tag := d.Value("repository"), d.Value("tag")
	wanted := pytext.Truth(repository) || pytext.Truth(tag)
	if wanted && !(pytext.Truth(repository) && pytext.Truth(tag)) {
		return nil, modules.Usagef("If tagging, both a repository and tag are required")
	}
	file, err := d.cached(d.Value("path"))
	if err != nil {
		return nil, err
	}
	if !d.IsFile(file) {
		return nil, modules.Errorf("Source file %s does not exist", d.Str("path"))
	}
	f, err := os.Open(d.Path(file))
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer f.Close()
	before, err := d.images(true)
	if err != nil {
		return nil, err
	}
	begin := d.Now()
	events, err := d.events("load_image", request{query: dict{"quiet": int64(1)}, body: f, header: map[string]string{"Content-Type": "application/x-tar"}})
	var errs []any
	if code, said := refusal(err); code != "" {
		errs = append(errs, "Error response from daemon: "+said)
	} else if err != nil {
		return nil, err
	}
	ret := dict{"Time_Elapsed": d.elapsed(begin), "Path": d.Str("path")}
	for _, e := range events {
		status(dict{}, "load", e, &errs)
	}
	if len(errs) > 0 {
		return nil, modules.Errorf("Failed to load image(s) from %s: %s", d.Str("path"), errs[0])
	}
	after, err := d.images(true)
	if err != nil {
		return nil, err
	}
	var fresh []dict
	layers, ids := []any{}, missing(after, before)
	for _, m := range after {
		if slices.Contains(ids, m["Id"]) {
			fresh = append(fresh, m)
			layers = append(layers, short(m["Id"]))
		}
	}
	ret["Layers"] = layers
	if wanted {
		d.tagLoaded(ret, topLevel(after, fresh), pytext.Str(repository), pytext.Str(tag))
	}
	return ret, nil
}

// tagLoaded gives the image that was loaded its tag, if it is one.
func (d *client) tagLoaded(ret dict, top []dict, repository, tag string) {
	var ids []string
	for _, m := range top {
		ids = append(ids, pytext.Str(m["Id"]))
	}
	image := repository + ":" + tag
	switch {
	case len(ids) > 1:
		ret["Warning"] = "More than one top-level image layer was loaded (" + strings.Join(ids, ", ") + "), no image was tagged"
	case len(ids) == 0:
		ret["Warning"] = "No top-level image layers were loaded, no image was tagged"
	default:
		if err := d.tag(ids[0], repository, tag); err != nil {
			ret["Warning"] = "Failed to tag " + ids[0] + " as " + image + ": " + err.Error()
			return
		}
		ret["Image"] = image
	}
}

// archive is where an image or a container is saved.
type archive struct{ path, compression string }

// archiveArgs reads the arguments of save and export. The text about a missing directory is the function's own.
func (d *client) archiveArgs(noDir string) (a archive, err error) {
	var ok bool
	if a.path, ok = d.Value("path").(string); !ok {
		return a, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(d.Value("path"))}
	}
	if !path.IsAbs(a.path) {
		return a, modules.Usagef("Path '%s' is not absolute", a.path)
	}
	if _, err := os.Stat(d.Path(a.path)); err == nil && !d.Bool("overwrite") {
		return a, modules.Errorf("%s already exists", a.path)
	}
	a.compression = d.Str("compression")
	switch a.compression {
	case "":
		for _, e := range [...][3]string{{".tar.gz", ".tgz", "gzip"}, {".tar.bz2", ".tbz2", "bzip2"}, {".tar.xz", ".txz", "xz"}} {
			if d.Value("compression") == nil && (strings.HasSuffix(a.path, e[0]) || strings.HasSuffix(a.path, e[1])) {
				a.compression = e[2]
			}
		}
	case "gz":
		a.compression = "gzip"
	case "bz2":
		a.compression = "bzip2"
	case "lzma":
		a.compression = "xz"
	case "gzip", "bzip2", "xz":
	default:
		return a, modules.Usagef("Invalid compression type '%s'", a.compression)
	}
	dir := path.Dir(a.path)
	if info, err := os.Stat(d.Path(dir)); err == nil && info.IsDir() {
		return a, nil
	}
	if !d.Bool("makedirs") {
		return a, modules.Errorf(noDir, dir)
	}
	if err := os.MkdirAll(d.Path(dir), 0o755); err != nil {
		text, _ := modules.OSErrorText(err)
		return a, modules.Errorf("Unable to make parent dir %s: %s", dir, text)
	}
	return a, nil
}

// store writes an answer to a file.
func (d *client) store(a archive, attr string, id any) (any, error) {
	begin := d.Now()
	resp, cancel, err := d.open(attr, request{id: id, patience: forever})
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer resp.Body.Close()
	err = d.writeFile(a.path, 0o644, func(w io.Writer) error {
		if a.compression == "" {
			_, err := io.Copy(w, resp.Body)
			return err
		}
		res, err := d.Cmd(d.ctx, modules.Command{Args: []string{a.compression, "-c"}, Dir: "/", Stdin: resp.Body, Stdout: w})
		if err == nil && res.ExitCode != 0 {
			err = modules.Errorf("%s: %s", a.compression, strings.TrimSpace(string(res.Stderr)))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	ret := dict{"Time_Elapsed": d.elapsed(begin), "Path": a.path}
	info, err := os.Stat(d.Path(a.path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	ret["Size"], ret["Size_Human"] = info.Size(), sizeText(info.Size())
	if pytext.Truth(d.Keywords["push"]) {
		ret["Push"], err = d.Exec(d.ctx, "cp.push", a.path)
	}
	return ret, err
}

func (d *client) save() (any, error) {
	a, err := d.archiveArgs("Parent dir '%s' of destination path does not exist. Use makedirs=True to create it.")
	if err != nil {
		return nil, err
	}
	name := d.Value("name")
	m, err := d.inspectImage(name)
	if err != nil {
		return nil, err
	}
	if tags, _ := m["RepoTags"].([]any); !slices.Contains(tags, name) {
		name = m["Id"]
	}
	ret, err := d.store(a, "save_image", name)
	if err != nil && d.ctx.Err() == nil {
		err = modules.Errorf("Failed to save image(s) to %s: %s", a.path, err)
	}
	return ret, err
}

func (d *client) export() (any, error) {
	a, err := d.archiveArgs("Parent dir %s of destination path does not exist. Use makedirs=True to create it.")
	if err != nil {
		return nil, err
	}
	ret, err := d.store(a, "export", d.Value("name"))
	if err != nil && d.ctx.Err() == nil {
		err = modules.Errorf("Error occurred during container export: %s", err)
	}
	return ret, err
}
