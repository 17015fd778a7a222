"""The style sheet of ``report.html``.

Text and marks keep a contrast of 4.5 to 1 against their ground, in light and in dark (WCAG 2.2, 1.4.3).
"""

from __future__ import annotations

CSS = """
:root{--ground:#fff;--card:#f6f7f9;--text:#1b1f24;--quiet:#57606a;--line:#d5dae0;--good:#176b37;--bad:#b3261e;
--doubt:#855600;--base:#3b6fb5;--treat:#b0481a;--goodbg:#e3f4e8;--badbg:#fbe5e3;--doubtbg:#fbf0d5;--forbid:#b3261e22}
@media (prefers-color-scheme:dark){:root{--ground:#14171b;--card:#1d2126;--text:#e4e8ec;--quiet:#9ea8b3;--line:#3a424b;
--good:#6fd08c;--bad:#ff9a90;--doubt:#e6b450;--base:#7fb0f0;--treat:#f0a070;--goodbg:#16301f;--badbg:#3c1b19;
--doubtbg:#362a10;--forbid:#ff9a9024}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1000px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:1.35rem;margin:0 0 .3rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p{margin:.3rem 0;overflow-wrap:anywhere}
header{border:1px solid var(--line);border-left:8px solid var(--quiet);border-radius:6px;padding:14px 18px;
background:var(--card)}
header.pass{border-left-color:var(--good)}header.pass h1{color:var(--good)}
header.inconclusive{border-left-color:var(--doubt)}header.inconclusive h1{color:var(--doubt)}
header.regressed,header.invalid,header.error{border-left-color:var(--bad)}
header.regressed h1,header.invalid h1,header.error h1{color:var(--bad)}
.warning{background:var(--doubtbg);color:var(--doubt);padding:8px 14px;border-radius:6px;margin:12px 0;font-weight:600}
.advice{color:var(--quiet)}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;margin:.5rem 0;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:5px 8px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--quiet);font-weight:600;white-space:nowrap}
.number{text-align:right;white-space:nowrap;padding-left:8px}
.badge{border-radius:4px;padding:1px 7px;background:var(--card);white-space:nowrap}
.pass>.badge,.held>.badge{background:var(--goodbg);color:var(--good)}
.inconclusive>.badge,.not-checked>.badge,.noted>.badge{background:var(--doubtbg);color:var(--doubt)}
.regressed>.badge,.invalid>.badge,.error>.badge,.failed>.badge{background:var(--badbg);color:var(--bad)}
ul{padding-left:1.2rem;margin:.4rem 0}
.checks{list-style:none;padding:0}.checks li{margin:.35rem 0;overflow-wrap:anywhere}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr));gap:14px;
align-items:start}
figure{margin:0;border:1px solid var(--line);border-radius:6px;padding:8px;break-inside:avoid}
figcaption{color:var(--quiet);font-size:.88rem;text-align:center}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--text);font:12px system-ui,-apple-system,"Segoe UI",sans-serif}
svg text.tick{fill:var(--quiet);font-size:11px}
.grid{stroke:var(--line)}.same{stroke:var(--text);stroke-dasharray:4 3}
.join{stroke:var(--quiet);stroke-width:1.2}
.baseline{fill:var(--base);stroke:var(--base)}.treatment{fill:var(--treat);stroke:var(--treat)}
.apart{fill:var(--ground);stroke-width:1.6}
.curve{fill:none;stroke-width:2}.treatment.curve{stroke-dasharray:7 4}
.forbidden{fill:var(--forbid)}
.pair{fill:var(--quiet)}
.interval{stroke-width:4;stroke-linecap:round}
g.pass{stroke:var(--good);fill:var(--good)}g.inconclusive{stroke:var(--doubt);fill:var(--doubt)}
g.regressed{stroke:var(--bad);fill:var(--bad)}g{stroke:var(--quiet);fill:var(--quiet)}
.mean{stroke:var(--ground)}
.legend{display:flex;flex-wrap:wrap;gap:4px 8px;align-items:center;color:var(--quiet);font-size:.88rem}
.legend svg{width:14px;height:14px;flex:none}
details{margin:1rem 0;border-top:1px solid var(--line);padding-top:.6rem}
summary{cursor:pointer;font-weight:600}
details td:last-child{overflow-wrap:anywhere}
@media print{:root{--ground:#fff;--card:#fff;--text:#000;--quiet:#444;--line:#bbb;--good:#176b37;--bad:#b3261e;
--doubt:#855600;--base:#3b6fb5;--treat:#b0481a;--goodbg:#fff;--badbg:#fff;--doubtbg:#fff;--forbid:#b3261e22}
body{font-size:10.5pt}main{max-width:none;padding:0}tr,li,header{break-inside:avoid}h2,h3{break-after:avoid}
@page{margin:14mm}
.badge{border:1px solid currentColor}details::details-content{display:block;content-visibility:visible}
.wide{overflow:visible}.plots{grid-template-columns:1fr 1fr}
.forbidden{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
