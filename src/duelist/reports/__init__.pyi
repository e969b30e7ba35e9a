from duelist.reports.document import html_report as html_report
from duelist.reports.document import markdown_report as markdown_report
from duelist.reports.families import collect_standings as collect_standings
from duelist.reports.families import family_report as family_report
from duelist.reports.families import settings_report as settings_report
from duelist.reports.paper import reproduction_report as reproduction_report
from duelist.reports.paper import sweep_report as sweep_report
from duelist.reports.tables import ReportTable as ReportTable
