--- Keeps the bytes that a connection has received, in pieces, until its reader has read them.
---
---   input.bytes, input.at   what is there, and where the reader is in it; the reader moves `at`
---   input.wanted            bytes of the next frame, as far as the reader knows: fewer are not worth a look
local M = {}
M.__index = M


--- @param frame_bytes integer bytes of the first frame at least
function M.new(frame_bytes)
  return setmetatable({ bytes = "", at = 1, frame_bytes = frame_bytes, pieces = {}, piece_bytes = 0 }, M)
end


--- Bytes that are there and not read.
function M:size()
  return #self.bytes - self.at + 1
end


--- Adds a piece. Pieces are only joined when a whole frame may be there, and what has been read is only cut off then:
--- to do so with each would be quadratic.
--- @return boolean whether there may be a frame
function M:add(piece)
  self.pieces[#self.pieces + 1] = piece
  self.piece_bytes = self.piece_bytes + #piece
  if self:size() + self.piece_bytes < self.frame_bytes then
    return false
  end
  self.bytes, self.at = self.bytes:sub(self.at) .. table.concat(self.pieces), 1
  self.pieces, self.piece_bytes = {}, 0
  return true
end


return M
