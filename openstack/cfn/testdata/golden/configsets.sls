#!yaml
cfn-0001 files /a:
  file.directory:
  - name: /a
  - makedirs: true
  - follow_symlinks: true
cfn-0002 files /a/1:
  file.managed:
  - name: /a/1
  - contents: '1'
  - contents_newline: false
  - show_changes: false
  - require:
    - file: cfn-0001 files /a
cfn-0003 files /a/2:
  file.managed:
  - name: /a/2
  - contents: '2'
  - contents_newline: false
  - show_changes: false
  - require:
    - file: cfn-0002 files /a/1
cfn-0004 commands go:
  cmd.run:
  - name: 'true'
  - shell: /bin/sh
  - cwd: /
  - require:
    - file: cfn-0003 files /a/2
# warning: app.oddity is not a section that cfn-init knows
