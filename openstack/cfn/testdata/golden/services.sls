#!yaml
cfn-0001 packages apt:
  pkg.installed:
  - pkgs:
    - nginx
  - refresh: false
cfn-0002 sources /srv/www:
  archive.extracted:
  - name: /srv/www
  - source: http://127.0.0.1/a.tgz
  - archive_format: tar
  - skip_verify: true
  - enforce_toplevel: false
  - overwrite: true
  - require:
    - pkg: cfn-0001 packages apt
cfn-0003 files /etc/nginx:
  file.directory:
  - name: /etc/nginx
  - makedirs: true
  - follow_symlinks: true
  - require:
    - archive: cfn-0002 sources /srv/www
cfn-0004 files /etc/nginx/a.conf:
  file.managed:
  - name: /etc/nginx/a.conf
  - replace: false
  - require:
    - file: cfn-0003 files /etc/nginx
cfn-0005 files /etc/nginx/a.conf:
  file.decode:
  - name: /etc/nginx/a.conf
  - encoded_data: YQ0K
  - checksum: sha256
  - require:
    - file: cfn-0004 files /etc/nginx/a.conf
cfn-0006 commands reindex:
  cmd.run:
  - name: 'true'
  - shell: /bin/sh
  - cwd: /
  - require:
    - file: cfn-0005 files /etc/nginx/a.conf
cfn-0007 services nginx:
  service.running:
  - name: nginx
  - enable: true
  - watch:
    - file: cfn-0004 files /etc/nginx/a.conf
    - file: cfn-0005 files /etc/nginx/a.conf
    - archive: cfn-0002 sources /srv/www
    - cmd: cfn-0006 commands reindex
    - pkg: cfn-0001 packages apt
  - require:
    - cmd: cfn-0006 commands reindex
cfn-0008 services sendmail:
  service.dead:
  - name: sendmail
  - enable: false
  - require:
    - service: cfn-0007 services nginx
cfn-0009 services cron:
  service.enabled:
  - name: cron
  - require:
    - service: cfn-0008 services sendmail
cfn-0010 services ssh:
  service.running:
  - name: ssh
  - require:
    - service: cfn-0009 services cron
cfn-0011 services off:
  service.disabled:
  - name: 'off'
  - require:
    - service: cfn-0010 services ssh
# warning: config.services.sysvinit.nginx.files names "/not/there", which this configuration does not have
# warning: config.services.systemd.odd has neither enabled nor ensureRunning
# warning: config.services.windows is not a kind of services that cfn-init knows; they are skipped
