package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// siteStates are the states of the demonstration. They write only below the minion's own directory and need no
// privileges: they use an installed package, and a running service or, on a host without one, a service that does not
// run.
const siteStates = `{% set site = opts['root_dir'] ~ '/site' %}
site directory:
  file.directory:
    - name: {{ site | yaml_dquote }}

front page:
  file.managed:
    - name: {{ (site ~ '/index.html') | yaml_dquote }}
    - source: salt://site/index.html
    - template: jinja
    - context: {title: {{ pillar['site']['title'] | yaml_dquote }}}
    - require: [{file: site directory}]
{% if 'pkg.version' in salt and salt['pkg.version']('bash') %}
bash:
  pkg.installed:
    - refresh: False
    - require_in: [{file: site directory}]
{% endif %}
{% set running = salt['service.get_running']() if 'service.get_running' in salt else [] %}
{% if running %}
{{ running | first }}:
  service.running:
    - require: [{file: front page}]
{% elif 'service.status' in salt %}
brine-demonstration:
  service.dead:
    - require: [{file: front page}]
{% endif %}
reload:
  cmd.run:
    - name: echo here a web server would reload
    - onchanges: [{file: front page}]
`

const siteTemplate = `<title>{{ title }}</title>
<p>{{ grains['id'] }} runs {{ grains['kernel'] }}.</p>
`

// sitePillar is a template too: each minion has its own title.
const sitePillar = `site:
  title: {{ grains['id'] | capitalize }}
`

// writeTrees writes the states and the pillar below the directories of the master.
func writeTrees(files, pillar string) error {
	for name, text := range map[string]string{
		filepath.Join(files, "hello.txt"):          "Hello from the master's file server.\n",
		filepath.Join(files, "site", "init.sls"):   siteStates,
		filepath.Join(files, "site", "index.html"): siteTemplate,
		filepath.Join(pillar, "top.sls"):           "base: {'*': [site]}\n",
		filepath.Join(pillar, "site.sls"):          sitePillar,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("cannot write the demonstration's files: %w", err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write the demonstration's files: %w", err)
		}
	}
	return nil
}
