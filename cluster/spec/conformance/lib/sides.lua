--- The sides of a comparison. A side has play(case) -> transcript, problems, or nil and why; close(); in_process.
local cases = require "cluster.spec.conformance.lib.cases"
local player = require "cluster.spec.conformance.lib.player"
local transcript = require "cluster.spec.conformance.lib.transcript"

local M = {}

local RECORDED = "cluster/spec/conformance/recorded/"


local function written(folder)
  return {
    play = function(case)
      return transcript.read(cases.place(folder, case), case.scenario)
    end,
    close = function() end,
  }
end


local function server(transport)
  return {
    play = function(case)
      return player.play(case.scenario, transport, case.options)
    end,
    close = function() transport:close() end,
    in_process = transport.in_process,
  }
end


--- The side of a word: "recorded" or a folder with a slash behind, where answers were written down; "embedded", in
--- this process; or a kubeconfig file.
function M.of(word)
  if word == "recorded" then
    return written(RECORDED)
  elseif word:find("/$") then
    return written(word)
  elseif word == "embedded" then
    return server(require("cluster.spec.conformance.lib.embedded").new())
  end
  return server(require("cluster.spec.conformance.lib.http").new(word))
end


return M
