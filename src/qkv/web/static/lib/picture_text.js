// Text in exported pictures: what a page says in words, as an SVG of its own.

const WIDTH = 900, MARGIN = 24, CHARACTERS = 104;

/** Lines of { text, tone, size, weight, mono, indent, gap } as one SVG; long lines are wrapped. Null without lines. */
export function textPicture(lines, width = WIDTH) {
  const style = getComputedStyle(document.documentElement), ink = getComputedStyle(document.body);
  let y = MARGIN;
  const parts = [];
  for (const line of lines.filter((l) => l?.text)) {
    const size = line.size ?? 14, indent = line.indent ?? 0;
    y += line.gap ?? 0;
    const room = Math.floor((CHARACTERS * 14 * (width - 2 * MARGIN - indent)) / (size * (WIDTH - 2 * MARGIN)) * (line.mono ? 0.85 : 1));
    for (const text of wrapped(line.text, room)) {
      y += Math.round(1.45 * size);
      parts.push(`<text x="${MARGIN + indent}" y="${y}" font-size="${size}" font-weight="${line.weight ?? 400}" fill="${line.tone ? style.getPropertyValue(`--${line.tone}`) || ink.color : ink.color}"${line.mono ? ' font-family="ui-monospace, monospace"' : ""}>${escaped(text)}</text>`);
    }
  }
  if (!parts.length) return null;
  const size = { width, height: y + MARGIN };
  return { ...size, body: parts.join(""), text: framed(size, parts.join("")) };
}

function framed({ width, height }, body) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif">`
    + `<rect width="100%" height="100%" fill="${getComputedStyle(document.body).backgroundColor}"/>${body}</svg>`;
}

function wrapped(text, room) {
  const lines = [];
  for (const word of text.split(/\s+/)) {
    if (lines.length && `${lines.at(-1)} ${word}`.length <= room) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  }
  return lines;
}

function escaped(text) {
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
}
