#!yaml
cfn-0001 sources /opt/a:
  archive.extracted:
  - name: /opt/a
  - source: http://127.0.0.1/a.tar.gz
  - archive_format: tar
  - skip_verify: true
  - enforce_toplevel: false
  - overwrite: true
cfn-0002 sources /opt/b:
  archive.extracted:
  - name: /opt/b
  - source: https://github.com/user/repo/zipball/master
  - archive_format: zip
  - skip_verify: true
  - enforce_toplevel: false
  - overwrite: true
  - require:
    - archive: cfn-0001 sources /opt/a
cfn-0003 sources /opt/c:
  file.directory:
  - name: /opt/c
  - makedirs: true
  - follow_symlinks: true
  - require:
    - archive: cfn-0002 sources /opt/b
cfn-0004 sources /opt/c:
  file.managed:
  - name: /opt/c/c.sql.gz
  - source: http://127.0.0.1/c.sql.gz?x=1
  - skip_verify: true
  - show_changes: false
  - require:
    - file: cfn-0003 sources /opt/c
cfn-0005 sources /opt/c:
  cmd.run:
  - name: gunzip -f /opt/c/c.sql.gz
  - shell: /bin/sh
  - require:
    - file: cfn-0004 sources /opt/c
