-- attack: a text of nearly a megabyte that is never closed.
-- expect: refused /unfinished/
return [==[@x100000{]=] xxxx ]}@
