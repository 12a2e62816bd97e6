# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import classifiers, encoders, failure, guests, mapsheets, paths, photos, plots, saliency, scenes, segmentation, stats, tables
from cnslib import overlap as overlaps
from cnslib.config import Evaluation
from cnslib.studies import Segmentation

# settings
plots.use_style()
layout = paths.Layout(out)
training = {"encoder": encoder, "steps": steps, "batch_size": batch_size, "learning_rate": learning_rate, "average": average}
asked = {"images": images, "severities": severities, "photographs": photographs, "photo_classifiers": photo_classifiers}
bootstrap = {"resamples": resamples, "confidence": confidence, "seed": seed}
settings = Segmentation(**bootstrap, networks=networks, overlap=overlap, **training, **asked)
folder, names = layout.artifacts("segmentation"), encoders.read_labels(labels)
note = f"{confidence:.0%} bootstrap over images"

# networks
files = segmentation.answer(
    classes, settings=settings, device=device, folder=folder, checkpoints=layout.root / "checkpoints" / "segmentation"
)
counts = pd.concat([tables.read(own["overlaps"], segmentation.overlaps) for own in files.values()], ignore_index=True)
rows = overlaps.images(counts, settings=settings)
found = stats.outcomes(rows)
print(f"{len(networks)} networks, {len(classes) * images} garments, {len(scenes.NAMES)} scenarios, {len(rows):,} maps")

# maps-figure
own = scenes.garments(classes, settings=settings)[0]
sheet, columns = mapsheets.segmentations(own, files, seed=seed)
figure, axes = plt.subplots(figsize=(9.5, 4.2))
plots.contact_sheet(axes, sheet, rows=["picture", "truth", *files], columns=columns)
plt.setp(axes.get_xticklabels(), rotation=30, ha="left")
mapsheets.key(axes)
plots.caption(figure, f"a held-out {own.label}; every scenario at severity 1")
plots.save(figure, layout.figures / "segmentation_maps", rows.merge(pd.DataFrame([{"class": own.label, "seed": own.seed}])))

# miou-figure
miou = overlaps.table(overlaps.miou(found, counts, settings=settings))
figure = plots.panels(miou, plots.estimate_lines, by="scenario", x="severity", hue="model", label="mIoU")
plots.caption(figure, f"{plots.extent(miou['n'])} images per network; bands: {note}")
plots.save(figure, layout.figures / "segmentation_miou", miou)
last = miou[miou["severity"] == 1].pivot(index="scenario", columns="model", values="estimate")
start = miou[miou["severity"] == 0].groupby("model")["estimate"].first().rename("original")
pd.concat([start.to_frame().T, last.sort_values(networks[0])]).round(3)

# shape
measures = {name: overlaps.means(found, rows, name, settings=settings) for name in ("iou", "foreground")}
both = pd.concat({name: overlaps.table(shares) for name, shares in measures.items()}, names=["measure"]).reset_index("measure")
ends = both[(both["severity"] == 1) & (both["scenario"] != "all scenarios")].groupby(["scenario", "measure"])["estimate"].mean().unstack()
ends.assign(misnamed=ends["foreground"] - ends["iou"]).sort_values("iou").round(3)

# failure-figure
failures = stats.failure_shares(found, settings=settings)
survival = overlaps.named(failure.curves(failures))
figure = plots.panels(
    survival, plots.estimate_lines, by="scenario", x="severity", hue="model", label=f"share with IoU of {overlap:g} so far"
)
plots.caption(figure, f"{plots.extent(failures.n)} images; bands: {note}")
plots.save(figure, layout.figures / "segmentation_failure", survival)

# looks
sources = Evaluation(**evaluation).classifiers
looks = saliency.read(saliency.garments(sources, names, classes, settings=settings, device=device, folder=folder))
seen = stats.outcomes(looks)
shares = overlaps.means(seen, looks, "share", settings=settings)
area = overlaps.table(overlaps.means(seen, looks, "area", settings=settings)).iloc[0]
print(f"{len(seen.models)} classifiers; the garment covers {area['estimate']:.1%} ({area['low']:.1%} to {area['high']:.1%}) of a picture")

# looks-figure
figure, axes = plt.subplots(figsize=(9.5, 5.6))
few = {name: classifiers.load(name, sources[name], names, device) for name in shown if name in sources}
sheet, columns = mapsheets.attributions(own, few, saliency.GRADIENT, seed=seed)
plots.contact_sheet(axes, sheet, rows=["picture", *few], columns=columns)
plt.setp(axes.get_xticklabels(), rotation=30, ha="left")
plots.caption(figure, f"a held-out {own.label}; every scenario at severity 1; each map is scaled to its own 99th percentile")
one = looks.query("model in @few and `class` == @own.label and seed == @own.seed")
plots.save(figure, layout.figures / "segmentation_saliency", one)

# share-figure
plain = overlaps.table(shares).query("severity == 0 and scenario == 'grey'")
overall = mapsheets.over_models(shares)
figure, panels = plt.subplots(1, 2, figsize=(8, 0.8 + 0.17 * len(plain)), layout="constrained")
for axes, part, y in zip(panels, (plain, overall), ("model", "scenario"), strict=True):
    plots.estimate_dots(axes, part, y=y, label="share of the attribution on the garment", reference=area["estimate"])
plots.caption(figure, f"n = {shares.n[0]} images, {len(seen.models)} classifiers; lines: {note}; dotted: share of the area")
plots.save(figure, layout.figures / "segmentation_share", overlaps.table(shares))
overall.set_index("scenario").round(3)

# photos
files_of_photos = saliency.photographs(photos.labels(), settings=settings, device=device, folder=folder)
pictured = saliency.read(files_of_photos)
by_method = {name: mapsheets.on_photographs(part, settings=settings) for name, part in pictured.groupby("method")}
photo_area = overlaps.record(by_method[saliency.GRADIENT]["area"], photographs, settings=settings)
photo_shares = pd.concat({name: own["table"] for name, own in by_method.items()}, names=["method"]).reset_index("method")
print("share of the area:", {key: round(value, 3) for key, value in photo_area.items()})
photo_shares.pivot(index="scenario", columns=["method"], values="estimate").round(3)

# photos-figure
name, source = next(iter(photo_classifiers.items()))
guest = guests.guest(source, name=name, labels=photos.labels(), device=device)
photo = scenes.photographs(paths.PHOTOS, settings=settings)[0]
sheet, columns = mapsheets.photograph(photo, guest, seed=seed)
figure, axes = plt.subplots(figsize=(9.5, 2.9))
plots.contact_sheet(axes, sheet, rows=[photo.label, f"{name}: {saliency.GRADIENT}", f"{name}: {saliency.GRAD_CAM}"], columns=columns)
plt.setp(axes.get_xticklabels(), rotation=30, ha="left")
plots.save(figure, layout.figures / "segmentation_photos", photo_shares)

# robust
share, drop = overlaps.robustness(seen, shares, settings=settings)
rho = overlaps.correlation(share, drop, settings=settings)
points = overlaps.points(share, drop, seen.models, shares.n[0], settings=settings)
figure, axes = plt.subplots(figsize=(5, 3.2))
mapsheets.cloud(axes, points, reference=area["estimate"])
plots.caption(figure, f"n = {shares.n[0]} images, {rho['n']} classifiers; lines: {note}; dotted: the area; named where there is room")
plots.save(figure, layout.figures / "segmentation_robust", points)
print("rank correlation:", {key: round(value, 2) for key, value in rho.items()})

# paper
coefficients = overlaps.table3(overlaps.effects(measures["iou"], settings=settings))
coefficients.drop(columns="of").round(3)

# paper-text-claims
beside = overlaps.miou_beside(miou, paths.PUBLISHED / "segmentation.csv")
claim = mapsheets.claim(rho)
pd.concat([beside.rename(columns={"network": "quantity"}), claim], ignore_index=True).round(3)

# verdict
hurt, before = ends["iou"].sort_values(), measures["iou"].samples[0, 0, :, 0].mean()
above = int((plain["low"] > area["high"]).sum())
size = f"rank correlation with the lost accuracy {rho['estimate']:.2f}, {rho['low']:.2f} to {rho['high']:.2f}"
worst = " and ".join(f"{name} ({value:.2f})" for name, value in hurt.iloc[:2].items())

# answer
first = f"The mean IoU of {len(networks)} networks falls from {before:.2f} furthest under {worst}"
second = f"{above} of {len(plain)} classifiers certainly look at the garment more than its area, {area['estimate']:.0%}, would give"
answer.update(Markdown(f"**{first}; {second}; how much they do tells {mapsheets.worded(rho)} ({size}).**"))

# outputs
metrics = {f"miou_{name}": stats.records(part, "scenario") for name, part in miou[miou["severity"] == 1].groupby("model")}
metrics["miou_original"] = stats.records(miou.query("severity == 0 and scenario == 'grey'"), "model")
metrics["share_original"] = stats.records(plain, "model")
metrics["share_by_scenario"] = stats.records(overall, "scenario")
metrics |= {"area": {"garments": area[["n", "estimate", "low", "high"]].to_dict(), "photographs": photo_area}}
metrics |= {f"photographs_{name}": stats.records(part, "scenario") for name, part in photo_shares.groupby("method")}
metrics |= {"rank_correlation": rho, "coefficients": stats.records(coefficients.rename(columns={"ours": "estimate"}), "name")}
tables.write_metrics(layout.metrics / "segmentation.json", metrics)
